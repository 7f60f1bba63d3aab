/*
 * rows.h
 *		What the functions for SQL have in common.
 */
#ifndef GOVERNOR_ROWS_H
#define GOVERNOR_ROWS_H

#include "compat.h"

#include "datatype/timestamp.h"
#include "utils/tuplestore.h"

/*
 * A function's name in the library is that of SQL, and does not change.  Objects that an older version has made
 * call it by a name that ends with that version: they work until ALTER EXTENSION pg_governor UPDATE.
 */
#define GOVERNOR_FORMER_NAME(name, version) \
	PG_FUNCTION_INFO_V1(name##version); \
	Datum \
	name##version(PG_FUNCTION_ARGS) \
	{ \
		return name(fcinfo); \
	} \
	extern Datum name##version(PG_FUNCTION_ARGS)

/* A column that a function can return. */
typedef struct GovernorColumn
{
	const char *name;
	Oid			type;
} GovernorColumn;

/* The rows that a function returns: those of its columns that the SQL objects name, in their order. */
typedef struct GovernorRows
{
	ReturnSetInfo *result;
	int		   *sources;		/* of each column of the result, which of the function's it is */
} GovernorRows;

#define governor_rows_begin(fcinfo, columns) governor_rows_begin_with(fcinfo, columns, lengthof(columns))

extern void governor_rows_need_library(void);
extern GovernorRows governor_rows_begin_with(FunctionCallInfo fcinfo, const GovernorColumn *columns, int count);
extern void governor_rows_put(const GovernorRows *rows, const Datum *values, const bool *nulls);
extern TimestampTz governor_rows_timestamp(uint64 monotonic_us);
extern double governor_rows_ms(uint64 us);
extern int	governor_rows_pool(text *name);

#endif							/* GOVERNOR_ROWS_H */
