/*
 * rows.c
 *		What the functions under the views have in common, and what is left of
 *		those of version 0.1.
 *
 * A function's name in the library ends with the version of the SQL that it was
 * made for, and the number of columns is compared before a row is written.  So
 * a library and SQL objects of different versions cannot crash the server.
 */
#include "rows.h"

#include "utils/timestamp.h"

#include "clock.h"
#include "state.h"

PG_FUNCTION_INFO_V1(pg_governor_pools);
PG_FUNCTION_INFO_V1(pg_governor_queue);
PG_FUNCTION_INFO_V1(pg_governor_sessions);
PG_FUNCTION_INFO_V1(pg_governor_reset);

governor_noreturn static void complain_of_version(const char *detail);

/* A function that returns rows begins with this. */
ReturnSetInfo *
governor_rows_begin(FunctionCallInfo fcinfo, int columns)
{
	ReturnSetInfo *result = (ReturnSetInfo *) fcinfo->resultinfo;

	if (governor == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("pg_governor must be loaded via \"shared_preload_libraries\"")));
	governor_materialize(fcinfo);
	if (result->setDesc->natts != columns)
		complain_of_version("A function returns another number of columns than the library.");
	return result;
}

/* When something was on the monotonic clock. */
TimestampTz
governor_rows_timestamp(uint64 monotonic_us)
{
	return GetCurrentTimestamp() - (governor_now_us() - (int64) monotonic_us);
}

double
governor_rows_ms(uint64 us)
{
	return us / 1000.0;
}

Datum
pg_governor_pools(PG_FUNCTION_ARGS)
{
	complain_of_version("The function is of version 0.1.");
}

Datum
pg_governor_queue(PG_FUNCTION_ARGS)
{
	complain_of_version("The function is of version 0.1.");
}

Datum
pg_governor_sessions(PG_FUNCTION_ARGS)
{
	complain_of_version("The function is of version 0.1.");
}

Datum
pg_governor_reset(PG_FUNCTION_ARGS)
{
	complain_of_version("The function is of version 0.1.");
}

static void
complain_of_version(const char *detail)
{
	ereport(ERROR,
			(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
			 errmsg("the SQL objects of pg_governor do not fit its library, which is of version %s",
					PG_GOVERNOR_VERSION),
			 errdetail("%s", detail),
			 errhint("Run ALTER EXTENSION pg_governor UPDATE; if the library is older than the objects, restart the server with the new one.")));
}
