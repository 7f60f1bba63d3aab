/*
 * reader.h
 *		Reads the words of a setting that is a list.
 */
#ifndef GOVERNOR_READER_H
#define GOVERNOR_READER_H

#include "compat.h"

/* What is being read, and why it was refused. */
typedef struct GovernorReader
{
	const char *at;
	const char *why;
	char	   *store;			/* where the strings of the list go, if it has any */
	Size		store_left;
} GovernorReader;

/* Reads one item into a list; false: it was refused. */
typedef bool (*GovernorItemReader) (GovernorReader *reader, void *list);

extern bool governor_read_setting(GovernorReader reader, void *list, GovernorItemReader read_item, const char *hint,
								  void **extra);
extern const char *governor_read_keep(GovernorReader *reader, const char *text, Size length);

extern bool governor_read_word(GovernorReader *reader, char *word, Size size);
extern bool governor_read_name(GovernorReader *reader, char *name, Size size, bool folded, const char *expected);
extern bool governor_read_char(GovernorReader *reader, char wanted);
extern bool governor_read_choice(GovernorReader *reader, const struct config_enum_entry *choices, int *chosen);
extern bool governor_read_refuse(GovernorReader *reader, const char *at, const char *why);
extern void governor_read_space(GovernorReader *reader);
extern int	governor_read_count(const char *text, char wanted);

#endif							/* GOVERNOR_READER_H */
