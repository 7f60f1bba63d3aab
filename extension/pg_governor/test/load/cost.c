/*
 * cost.c
 *		How much CPU backends of several servers use for one transaction, by the kernel's account of their processes.
 *
 *	cost SLICES STATEMENTS CONNINFO…
 *
 * A transaction is STATEMENTS, separated by "|", one message each.  Each server has one session.  They take turns: in each slice
 * every one runs some transactions, and another one begins, so that what else the machine does falls upon all alike.
 * Prints the median over the slices of nanoseconds for a transaction, by /proc/PID/schedstat, for each server.
 */
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SERVERS_MAX 8
#define STATEMENTS_MAX 16
#define PER_SLICE 50
#define SLICES_TO_WARM_UP 40

static char *statements[STATEMENTS_MAX];
static int	statement_count;

static void
fail(const char *what, const char *why)
{
	fprintf(stderr, "cost: %s: %s\n", what, why);
	exit(1);
}

/* Nanoseconds that the session's backend has run. */
static double
cpu_time(PGconn *connection)
{
	char		path[64];
	double		time = -1;
	FILE	   *file;

	snprintf(path, sizeof(path), "/proc/%d/schedstat", PQbackendPID(connection));
	file = fopen(path, "r");
	if (file == NULL || fscanf(file, "%lf", &time) != 1)
		fail(path, "cannot be read");
	fclose(file);
	return time;
}

/* What one slice takes for each of its transactions. */
static double
slice(PGconn *connection)
{
	double		before = cpu_time(connection);

	for (int i = 0; i < PER_SLICE; i++)
		for (int j = 0; j < statement_count; j++)
		{
			PGresult   *result = PQexec(connection, statements[j]);

			if (PQresultStatus(result) != PGRES_TUPLES_OK && PQresultStatus(result) != PGRES_COMMAND_OK)
				fail(statements[j], PQerrorMessage(connection));
			PQclear(result);
		}
	return (cpu_time(connection) - before) / PER_SLICE;
}

static int
compare(const void *a, const void *b)
{
	double		left = *(const double *) a;
	double		right = *(const double *) b;

	return left < right ? -1 : left > right;
}

int
main(int argc, char **argv)
{
	int			slices = argc > 1 ? atoi(argv[1]) : 0;
	int			servers = argc - 3;
	PGconn	   *connections[SERVERS_MAX];
	double	   *taken;

	if (slices <= 0 || servers < 1 || servers > SERVERS_MAX)
	{
		fprintf(stderr, "usage: cost SLICES STATEMENTS CONNINFO…\n");
		return 2;
	}
	for (char *one = strtok(argv[2], "|"); one != NULL && statement_count < STATEMENTS_MAX; one = strtok(NULL, "|"))
		statements[statement_count++] = one;
	for (int i = 0; i < servers; i++)
	{
		connections[i] = PQconnectdb(argv[i + 3]);
		if (PQstatus(connections[i]) != CONNECTION_OK)
			fail("connecting failed", PQerrorMessage(connections[i]));
		for (int j = 0; j < SLICES_TO_WARM_UP; j++)
			slice(connections[i]);
	}
	taken = malloc(servers * slices * sizeof(double));
	for (int j = 0; j < slices; j++)
		for (int i = 0; i < servers; i++)
		{
			int			server = (i + j) % servers;

			taken[server * slices + j] = slice(connections[server]);
		}
	for (int i = 0; i < servers; i++)
	{
		qsort(taken + i * slices, slices, sizeof(double), compare);
		printf("%.1f%s", taken[i * slices + slices / 2], i < servers - 1 ? "|" : "\n");
		PQfinish(connections[i]);
	}
	return 0;
}
