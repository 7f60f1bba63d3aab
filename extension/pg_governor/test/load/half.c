/*
 * half.c
 *		Counts transactions of which only a part was committed, under cancels and
 *		timeouts.
 *
 *	half CONNINFO BEGINS CLIENTS [SEED]
 *
 * Each client moves money between two accounts of its own, in one of three ways: as psql
 * does without ON_ERROR_STOP, statement after statement whatever they return; as a
 * careful driver does, which rolls back after an error; and in a pipeline.  Timeouts of a
 * few milliseconds end statements, and another process cancels those that queue.  In the
 * end each pair of accounts has to have the sum that it began with.
 *
 * The exit code is 0 if there is no half transaction.  BEGIN may fail now and then without
 * pg_governor too, where a timeout or a cancel meets it before it runs: the more often, the
 * busier the machine.  What its client commits one by one after that is known, and is no half
 * transaction.  An error of pg_governor's own in BEGIN is a failure.
 */
#include <libpq-fe.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct Counts
{
	long		left;
	long		errors;
	long		committed;
	long		begins_failed;
	long		begins_refused;	/* by pg_governor */
	long		outside[];		/* each client's sum of what it committed outside a block */
} Counts;

static Counts *counts;
static const char *conninfo;

static PGconn *
connect_to_server(void)
{
	PGconn	   *connection = PQconnectdb(conninfo);

	if (PQstatus(connection) != CONNECTION_OK)
	{
		fprintf(stderr, "half: connecting failed: %s", PQerrorMessage(connection));
		exit(2);
	}
	PQclear(PQexec(connection, "SET client_min_messages = error; SET synchronous_commit = off"));
	return connection;
}

/* Whether the statement succeeded. */
static int
run(PGconn *connection, const char *sql)
{
	PGresult   *result = PQexec(connection, sql);
	ExecStatusType status = PQresultStatus(result);
	int			fine = status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;

	if (!fine)
		__sync_fetch_and_add(&counts->errors, 1);
	PQclear(result);
	return fine;
}

static long
ask(PGconn *connection, const char *sql)
{
	PGresult   *result = PQexec(connection, sql);
	long		answer = PQntuples(result) == 1 ? atol(PQgetvalue(result, 0, 0)) : -1;

	PQclear(result);
	return answer;
}

/* The result of a BEGIN that failed. */
static void
count_failed_begin(const PGresult *result)
{
	const char *state = PQresultErrorField(result, PG_DIAG_SQLSTATE);

	__sync_fetch_and_add(&counts->begins_failed, 1);
	if (state != NULL && strncmp(state, "53G", 3) == 0)
		__sync_fetch_and_add(&counts->begins_refused, 1);
}

/* Whether BEGIN succeeded. */
static int
begin(PGconn *connection)
{
	PGresult   *result = PQexec(connection, "BEGIN");
	int			fine = PQresultStatus(result) == PGRES_COMMAND_OK;

	if (!fine)
		count_failed_begin(result);
	PQclear(result);
	return fine;
}

/* psql goes on after an error. */
static void
as_psql(PGconn *connection, int number, const char *take, const char *give)
{
	int			in_block = begin(connection);
	int			took = run(connection, take);
	int			gave = run(connection, give);

	if (!in_block)
		counts->outside[number] += 10 * (gave - took);
	if (run(connection, "COMMIT") && in_block)
		__sync_fetch_and_add(&counts->committed, 1);
}

static void
as_driver(PGconn *connection, const char *take, const char *give)
{
	if (begin(connection) && run(connection, take) && run(connection, give) && run(connection, "COMMIT"))
		__sync_fetch_and_add(&counts->committed, 1);
	else
		run(connection, "ROLLBACK");
}

/* Everything in one go; the synchronisation after BEGIN is what makes it dangerous. */
static void
as_pipeline(PGconn *connection, int number, const char *take, const char *give)
{
	const char *statements[] = {"BEGIN", take, give, "COMMIT"};
	int			failed[4] = {0};
	int			synced = 0;

	PQenterPipelineMode(connection);
	for (int i = 0; i < 4; i++)
	{
		PQsendQueryParams(connection, statements[i], 0, NULL, NULL, NULL, NULL, 0);
		PQpipelineSync(connection);
	}
	while (synced < 4)
	{
		PGresult   *result = PQgetResult(connection);

		if (PQstatus(connection) != CONNECTION_OK)
			exit(2);
		if (result == NULL)
			continue;
		synced += PQresultStatus(result) == PGRES_PIPELINE_SYNC;
		if (PQresultStatus(result) == PGRES_FATAL_ERROR)
		{
			failed[synced] = 1;
			if (synced == 0)
				count_failed_begin(result);
			else
				__sync_fetch_and_add(&counts->errors, 1);
		}
		PQclear(result);
	}
	if (failed[0])
		counts->outside[number] += 10 * (failed[1] - failed[2]);
	PQexitPipelineMode(connection);
	run(connection, "ROLLBACK");
}

static void
client(int number, unsigned seed)
{
	PGconn	   *connection = connect_to_server();
	char		take[128];
	char		give[128];

	srandom(seed);
	snprintf(take, sizeof(take), "UPDATE half_accounts SET balance = balance - 10 WHERE id = %d", 2 * number);
	snprintf(give, sizeof(give), "UPDATE half_accounts SET balance = balance + 10 WHERE id = %d", 2 * number + 1);
	while (__sync_fetch_and_sub(&counts->left, 1) > 0)
	{
		if (random() % 50 == 0)
		{
			char		set[128];

			snprintf(set, sizeof(set), "SET statement_timeout = %ld; SET pg_governor.user_queue_timeout = %ld",
					 random() % 2 * (3 + random() % 20), random() % 2 * (1 + random() % 20));
			while (!run(connection, set))
				;
		}
		switch (random() % 3)
		{
			case 0:
				as_psql(connection, number, take, give);
				break;
			case 1:
				as_driver(connection, take, give);
				break;
			default:
				as_pipeline(connection, number, take, give);
				break;
		}
	}
	PQfinish(connection);
}

static void
cancel_waiters(void)
{
	PGconn	   *connection = connect_to_server();

	while (counts->left > 0)
	{
		PQclear(PQexec(connection, "SELECT pg_cancel_backend(pid) FROM pg_governor_queue WHERE random() < 0.3"));
		PQclear(PQexec(connection, "SELECT pg_governor_evict(pid) FROM pg_governor_queue WHERE random() < 0.1"));
		usleep(2000);
	}
	PQfinish(connection);
}

int
main(int argc, char **argv)
{
	int			clients = argc > 3 ? atoi(argv[3]) : 16;
	unsigned	seed = argc > 4 ? atoi(argv[4]) : (unsigned) getpid();
	long		begins = argc > 2 ? atol(argv[2]) : 1000000;
	long		half = 0;
	long		outside = 0;
	PGconn	   *connection;
	char		sql[256];
	int			failed = 0;

	if (argc < 2)
	{
		fprintf(stderr, "usage: half CONNINFO [BEGINS [CLIENTS [SEED]]]\n");
		return 2;
	}
	conninfo = argv[1];
	counts = mmap(NULL, sizeof(Counts) + clients * sizeof(long), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	counts->left = begins;
	connection = connect_to_server();
	snprintf(sql, sizeof(sql), "DROP TABLE IF EXISTS half_accounts; CREATE TABLE half_accounts (id int PRIMARY KEY, balance bigint) "
			 "WITH (fillfactor = 20); INSERT INTO half_accounts SELECT i, 0 FROM generate_series(0, %d) i", 2 * clients - 1);
	if (!run(connection, sql))
	{
		fprintf(stderr, "half: making the table failed: %s", PQerrorMessage(connection));
		return 2;
	}
	printf("seed %u\n", seed);
	fflush(stdout);
	for (int i = 0; i <= clients; i++)
		if (fork() == 0)
		{
			if (i == clients)
				cancel_waiters();
			else
				client(i, seed + i);
			_exit(0);
		}
	for (int i = 0; i <= clients; i++)
	{
		int			status;

		wait(&status);
		failed += status != 0;
	}
	for (int i = 0; i < clients; i++)
	{
		snprintf(sql, sizeof(sql), "SELECT sum(balance) FROM half_accounts WHERE id IN (%d, %d)", 2 * i, 2 * i + 1);
		half += ask(connection, sql) != counts->outside[i];
		outside += counts->outside[i] != 0;
	}
	printf("%ld BEGINs, %ld statements failed, %ld transactions seen to commit; BEGIN failed %ld times (by pg_governor %ld), "
		   "after which %ld clients committed one statement of two; %ld pairs of accounts do not agree; %d clients failed\n",
		   begins, counts->errors, counts->committed, counts->begins_failed, counts->begins_refused, outside, half, failed);
	PQclear(PQexec(connection, "DROP TABLE half_accounts"));
	return half == 0 && counts->begins_refused == 0 && failed == 0 ? 0 : 1;
}
