/*
 * rows.c
 *		What the functions for SQL have in common.
 *
 * A function's name in the library ends with the version of the SQL that it was
 * made for, and the number of columns is compared before a row is written.  So
 * a library and SQL objects of different versions cannot crash the server.
 */
#include "rows.h"

#include "utils/builtins.h"
#include "utils/timestamp.h"

#include "clock.h"
#include "pool.h"
#include "state.h"

void
governor_rows_need_library(void)
{
	if (governor == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("pg_governor must be loaded via \"shared_preload_libraries\"")));
}

/* A function that returns rows begins with this. */
ReturnSetInfo *
governor_rows_begin(FunctionCallInfo fcinfo, int columns)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;

	governor_rows_need_library();
	governor_materialize(fcinfo);
	if (result->setDesc->natts != columns)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("the SQL objects of pg_governor do not fit its library, which is of version %s",
						PG_GOVERNOR_VERSION),
				 errdetail("A function returns another number of columns than the library."),
				 errhint("Run DROP EXTENSION pg_governor and CREATE EXTENSION pg_governor; if the library is older than the objects, restart the server with the new one.")));
	return result;
}

/* When something was on the monotonic clock; never later than it was, however long this process waits between the two clocks. */
TimestampTz
governor_rows_timestamp(uint64 monotonic_us)
{
	TimestampTz now = GetCurrentTimestamp();

	return now - (governor_now_us() - (int64) monotonic_us);
}

double
governor_rows_ms(uint64 us)
{
	return us / 1000.0;
}

/* The pool of that name, which has to be there. */
int
governor_rows_pool(text *name)
{
	char	   *wanted = text_to_cstring(name);
	int			pool = governor_pool_find(wanted);

	if (pool == GOVERNOR_NO_POOL)
		ereport(ERROR,
				(errcode(ERRCODE_UNDEFINED_OBJECT),
				 errmsg("there is no pool \"%s\"", wanted),
				 errhint("List it in pg_governor.pools.")));
	return pool;
}
