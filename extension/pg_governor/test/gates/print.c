/*
 * print.c
 *		Stands in for the server's own printf.
 */
#include "server.h"

#include <stdarg.h>
#include <stdio.h>

int
pg_snprintf(char *into, size_t size, const char *format,...)
{
	va_list		arguments;
	int			length;

	va_start(arguments, format);
	length = vsnprintf(into, size, format, arguments);
	va_end(arguments);
	return length;
}

int
pg_sprintf(char *into, const char *format,...)
{
	va_list		arguments;
	int			length;

	va_start(arguments, format);
	length = vsprintf(into, format, arguments);
	va_end(arguments);
	return length;
}
