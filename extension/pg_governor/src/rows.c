/*
 * rows.c
 *		What the functions for SQL have in common.
 *
 * The columns of a result are found by their names and types.  So SQL objects of any version fit the library,
 * or are refused: they cannot crash the server.
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
GovernorRows
governor_rows_begin_with(FunctionCallInfo fcinfo, const GovernorColumn *columns, int count)
{
	GovernorRows rows = {.result = (ReturnSetInfo *) fcinfo->resultinfo};
	TupleDesc	wanted;

	governor_rows_need_library();
	governor_materialize(fcinfo);
	wanted = rows.result->setDesc;
	rows.sources = palloc(wanted->natts * sizeof(int));
	for (int i = 0; i < wanted->natts; i++)
	{
		Form_pg_attribute column = TupleDescAttr(wanted, i);
		int			source = 0;

		while (source < count && strcmp(columns[source].name, NameStr(column->attname)) != 0)
			source++;
		if (source == count || columns[source].type != column->atttypid)
			ereport(ERROR,
					(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
					 errmsg("the SQL objects of pg_governor do not fit its library, which is of version %s",
							PG_GOVERNOR_VERSION),
					 errdetail("The library has no column \"%s\" of type %s.", NameStr(column->attname),
							   format_type_be(column->atttypid)),
					 errhint("If the library is older than the objects, restart the server with the new one; then run ALTER EXTENSION pg_governor UPDATE.")));
		rows.sources[i] = source;
	}
	return rows;
}

/* All columns of the function, of which the result has some. */
void
governor_rows_put(const GovernorRows *rows, const Datum *values, const bool *nulls)
{
	int			count = rows->result->setDesc->natts;
	Datum	   *row = palloc(count * sizeof(Datum));
	bool	   *row_nulls = palloc(count * sizeof(bool));

	for (int i = 0; i < count; i++)
	{
		row[i] = values[rows->sources[i]];
		row_nulls[i] = nulls[rows->sources[i]];
	}
	tuplestore_putvalues(rows->result->setResult, rows->result->setDesc, row, row_nulls);
	pfree(row);
	pfree(row_nulls);
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
