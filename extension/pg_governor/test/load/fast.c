/*
 * fast.c
 *		Counts blocks that did work although they had no slot, by a function that is called by
 *		the fast path and catches errors.
 *
 *	fast CONNINFO BLOCKS FUNCTION
 *
 * The function returns 1 if its work succeeded, and 0 if it has caught an error.  The slots are
 * all taken, and the session gives up at once (its user_queue_timeout): so each block is doomed.
 * The exit code is 0 if none did work.
 */
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *
value(PGconn *connection, const char *sql)
{
	PGresult   *result = PQexec(connection, sql);
	char	   *text;

	if (PQresultStatus(result) != PGRES_TUPLES_OK)
	{
		fprintf(stderr, "fast: %s: %s", sql, PQerrorMessage(connection));
		exit(2);
	}
	text = strdup(PQgetvalue(result, 0, 0));
	PQclear(result);
	return text;
}

int
main(int argc, char **argv)
{
	PGconn	   *connection;
	char		sql[200];
	int			blocks;
	int			worked = 0;
	int			function;

	if (argc != 4)
		return 2;
	connection = PQconnectdb(argv[1]);
	blocks = atoi(argv[2]);
	if (PQstatus(connection) != CONNECTION_OK)
	{
		fprintf(stderr, "fast: connecting failed: %s", PQerrorMessage(connection));
		return 2;
	}
	PQclear(PQexec(connection, "SET client_min_messages = error"));
	snprintf(sql, sizeof(sql), "SELECT '%s'::regprocedure::oid", argv[3]);
	function = atoi(value(connection, sql));
	PQclear(PQexec(connection, "SET pg_governor.user_queue_timeout = '10ms'"));
	for (int i = 0; i < blocks; i++)
	{
		int			answer = 0;
		int			length = 0;
		PGresult   *result;

		PQclear(PQexec(connection, "BEGIN"));
		result = PQfn(connection, function, &answer, &length, 1, NULL, 0);
		worked += PQresultStatus(result) == PGRES_COMMAND_OK && answer == 1;
		PQclear(result);
		PQclear(PQexec(connection, "ROLLBACK"));
	}
	PQfinish(connection);
	printf("%d of %d blocks without a slot did work\n", worked, blocks);
	return worked > 0;
}
