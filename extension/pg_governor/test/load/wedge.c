/*
 * wedge.c
 *		Searches for waits that nothing ends: clients of 29 kinds, drawn at random.
 *
 *	wedge CONNINFO CLIENTS SECONDS [SEED [LATE]]
 *
 * Each client is of one kind for some seconds, then of another one; some log in as a plain
 * role, some with the gates for statements.  Another session looks at the queue ten times
 * a second.  The exit code is 0 if nobody has queued for longer than queue_timeout and LATE
 * seconds, one without an argument, and all clients come to their end.
 */
#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* Beside SQL: "@think MS", "@copy", "@pipeline", "@prepared", "@vanish". */
typedef struct Kind
{
	const char *name;
	const char *steps[7];
} Kind;

#define BUSY(ms) "DO $$DECLARE until timestamptz := clock_timestamp() + '" ms " ms'; BEGIN " \
	"WHILE clock_timestamp() < until LOOP PERFORM sum(i) FROM generate_series(1, 500) i; END LOOP; END$$"

static const Kind kinds[] = {
	{"short", {"BEGIN", "UPDATE wedge SET n = n + 1 WHERE id = 1 + random() * 90", "SELECT count(*) FROM wedge", "COMMIT"}},
	{"select", {"SELECT count(*) FROM wedge"}},
	{"insert", {"INSERT INTO wedge_log DEFAULT VALUES"}},
	{"thinks", {"BEGIN", "SELECT 1", "@think 700", "COMMIT"}},
	{"thinks for long", {"BEGIN", "SELECT count(*) FROM wedge", "@think 15000", "COMMIT"}},
	{"thinks before its first statement", {"BEGIN", "@think 2000", "SELECT 1", "COMMIT"}},
	{"sleeps", {"BEGIN", "SELECT pg_sleep(5)", "COMMIT"}},
	{"report", {"BEGIN", BUSY("4000"), "COMMIT"}},
	{"report outside of a block", {BUSY("3000")}},
	{"hot row", {"BEGIN", "UPDATE wedge SET n = n + 1 WHERE id = 100", "@think 100", "COMMIT"}},
	{"hot row and idle", {"BEGIN", "UPDATE wedge SET n = n + 1 WHERE id = 100", "@think 5000", "ROLLBACK"}},
	{"locks a table", {"BEGIN", "LOCK TABLE wedge", "@think 300", "COMMIT"}},
	{"alters a table", {"ALTER TABLE wedge_log ADD COLUMN IF NOT EXISTS m int", "@think 1000"}},
	{"advisory lock, then a block", {"SELECT pg_advisory_lock(1)", "BEGIN", "SELECT 1", "COMMIT", "SELECT pg_advisory_unlock(1)"}},
	{"advisory lock in a block", {"BEGIN", "SELECT pg_advisory_xact_lock(1)", "@think 50", "COMMIT"}},
	{"prepares a transaction", {"BEGIN", "INSERT INTO wedge_log DEFAULT VALUES", "PREPARE TRANSACTION '%d'", "ROLLBACK PREPARED '%d'"}},
	{"procedure that commits", {"CALL wedge_commits()"}},
	{"held cursor", {"BEGIN", "DECLARE c CURSOR WITH HOLD FOR SELECT * FROM wedge", "COMMIT", "@think 200", "FETCH 5 FROM c", "CLOSE c"}},
	{"cursor outside of a block", {"DECLARE c CURSOR WITH HOLD FOR SELECT count(*) FROM wedge", "FETCH c", "CLOSE c"}},
	{"executes", {"PREPARE p AS SELECT count(*) FROM wedge WHERE id > $1", "EXECUTE p(1)", "SET plan_cache_mode = force_generic_plan", "EXECUTE p(2)",
	"EXECUTE p(3)", "RESET plan_cache_mode", "DEALLOCATE p"}},
	{"prepared by the protocol", {"@prepared"}},
	{"copy", {"@copy"}},
	{"pipeline", {"@pipeline"}},
	{"parallel query", {"SET min_parallel_table_scan_size = 0; SET parallel_setup_cost = 0", "BEGIN", "SELECT count(*) FROM wedge a, wedge b, wedge c", "COMMIT"}},
	{"error and savepoint", {"BEGIN", "SAVEPOINT a", "SELECT 1 / 0", "ROLLBACK TO a", "@think 100", "COMMIT"}},
	{"vanishes", {"BEGIN", "UPDATE wedge SET n = n + 1 WHERE id = 1 + random() * 90", "@vanish"}},
	{"hasty", {"SET statement_timeout = 500", "BEGIN", "SELECT pg_sleep(random())", "COMMIT", "RESET statement_timeout"}},
	{"own server", {"BEGIN", "SELECT count(*) FROM wedge_far", "COMMIT"}},
	{"chain", {"BEGIN", "SELECT 1", "COMMIT AND CHAIN", BUSY("300"), "COMMIT", "VACUUM wedge_log"}},
};

#define KINDS ((int) (sizeof(kinds) / sizeof(kinds[0])))

_Static_assert(sizeof(kinds) / sizeof(kinds[0]) == 29, "there are 29 kinds of clients");

static const char *conninfo;
static volatile long *steps_done;

static PGconn *
connect_to_server(void)
{
	PGconn	   *connection = PQconnectdb(conninfo);

	if (PQstatus(connection) != CONNECTION_OK)
	{
		fprintf(stderr, "wedge: connecting failed: %s", PQerrorMessage(connection));
		exit(2);
	}
	PQclear(PQexec(connection, "SET client_min_messages = error"));
	return connection;
}

static void
ignore(void *nothing, const char *message)
{
	(void) nothing;
	(void) message;
}

static double
ask(PGconn *connection, const char *sql)
{
	PGresult   *result = PQexec(connection, sql);
	double		answer = PQntuples(result) == 1 ? atof(PQgetvalue(result, 0, 0)) : -1;

	if (PQntuples(result) != 1)
		fprintf(stderr, "wedge: %s: %s", sql, PQerrorMessage(connection));
	PQclear(result);
	return answer;
}

static void
copy(PGconn *connection)
{
	PGresult   *result = PQexec(connection, "COPY wedge_log (n) FROM STDIN");

	if (PQresultStatus(result) == PGRES_COPY_IN)
	{
		PQputCopyData(connection, "1\n2\n", 4);
		usleep(random() % 500000);
		PQputCopyEnd(connection, NULL);
	}
	PQclear(result);
	while ((result = PQgetResult(connection)) != NULL)
		PQclear(result);
}

static void
pipeline(PGconn *connection)
{
	static const char *const statements[] = {"BEGIN", "SELECT count(*) FROM wedge", "INSERT INTO wedge_log DEFAULT VALUES", "COMMIT"};
	int			synced = 0;

	PQenterPipelineMode(connection);
	for (int i = 0; i < 4; i++)
		PQsendQueryParams(connection, statements[i], 0, NULL, NULL, NULL, NULL, 0);
	PQpipelineSync(connection);
	while (!synced && PQstatus(connection) == CONNECTION_OK)
	{
		PGresult   *result = PQgetResult(connection);

		synced = result != NULL && PQresultStatus(result) == PGRES_PIPELINE_SYNC;
		PQclear(result);
	}
	PQexitPipelineMode(connection);
	PQclear(PQexec(connection, "ROLLBACK"));
}

/* Of the second time on by a plan that was made before. */
static void
prepared(PGconn *connection)
{
	PQclear(PQprepare(connection, "count", "SELECT count(*) FROM wedge", 0, NULL));
	PQclear(PQprepare(connection, "note", "INSERT INTO wedge_log SELECT id FROM wedge WHERE id < 3 RETURNING n", 0, NULL));
	for (int i = 0; i < 4; i++)
	{
		PQclear(PQexecPrepared(connection, "count", 0, NULL, NULL, NULL, 0));
		PQclear(PQexecPrepared(connection, "note", 0, NULL, NULL, NULL, 0));
	}
	PQclear(PQexec(connection, "DEALLOCATE ALL"));
}

/* Returns the connection to go on with. */
static PGconn *
step(PGconn *connection, const char *what, int number)
{
	char		sql[512];

	__sync_fetch_and_add(steps_done, 1);
	if (strncmp(what, "@think ", 7) == 0)
		usleep(atoi(what + 7) * (500 + random() % 1000));
	else if (strcmp(what, "@copy") == 0)
		copy(connection);
	else if (strcmp(what, "@pipeline") == 0)
		pipeline(connection);
	else if (strcmp(what, "@prepared") == 0)
		prepared(connection);
	else if (strcmp(what, "@vanish") == 0)
	{
		close(PQsocket(connection));
		return connect_to_server();
	}
	else
	{
		snprintf(sql, sizeof(sql), what, number);
		PQclear(PQexec(connection, sql));
	}
	if (PQstatus(connection) != CONNECTION_OK)
	{
		PQfinish(connection);
		return connect_to_server();
	}
	return connection;
}

static void
client(int number, unsigned seed, time_t end)
{
	PGconn	   *connection = connect_to_server();

	srandom(seed);
	while (time(NULL) < end)
	{
		const Kind *kind = &kinds[random() % KINDS];
		time_t		change = time(NULL) + 1 + random() % 5;
		int			gated = random() % 3 == 0;

		PQsetNoticeProcessor(connection, ignore, NULL);
		/* A plain role may not set it, but keeps what was set before. */
		if (gated)
			PQclear(PQexec(connection, "SET pg_governor.gate_autocommit = on"));
		if (random() % 4 != 0)
			PQclear(PQexec(connection, "SET SESSION AUTHORIZATION wedge_plain"));
		while (time(NULL) < end && time(NULL) < change)
		{
			for (int i = 0; i < 7 && kind->steps[i] != NULL; i++)
				connection = step(connection, kind->steps[i], number);
			PQclear(PQexec(connection, "ROLLBACK"));
		}
		PQclear(PQexec(connection, "SELECT pg_advisory_unlock_all()"));
		PQclear(PQexec(connection, "RESET SESSION AUTHORIZATION"));
		PQclear(PQexec(connection, "DISCARD ALL"));
	}
	PQfinish(connection);
}

static void
make_tables(PGconn *connection)
{
	char		sql[2048];

	PQclear(PQexec(connection, "DROP TABLE IF EXISTS wedge, wedge_log CASCADE; DROP PROCEDURE IF EXISTS wedge_commits;"
				   "CREATE TABLE wedge AS SELECT i AS id, 0 AS n FROM generate_series(1, 100) i; CREATE TABLE wedge_log (n int);"
				   "ALTER TABLE wedge SET (parallel_workers = 2)"));
	PQclear(PQexec(connection, "CREATE PROCEDURE wedge_commits() LANGUAGE plpgsql AS $$BEGIN FOR i IN 1 .. 5 LOOP "
				   "INSERT INTO wedge_log VALUES (i); COMMIT; PERFORM pg_sleep(0.05); END LOOP; END$$"));
	PQclear(PQexec(connection, "CREATE ROLE wedge_plain LOGIN"));
	PQclear(PQexec(connection, "GRANT ALL ON wedge, wedge_log TO wedge_plain; ALTER TABLE wedge_log OWNER TO wedge_plain"));
	snprintf(sql, sizeof(sql), "CREATE EXTENSION IF NOT EXISTS postgres_fdw; DROP SERVER IF EXISTS wedge_self CASCADE;"
			 "CREATE SERVER wedge_self FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '127.0.0.1', port '%s', dbname '%s');"
			 "CREATE USER MAPPING FOR PUBLIC SERVER wedge_self OPTIONS (user '%s', password 'x', password_required 'false');"
			 "CREATE FOREIGN TABLE wedge_far (id int, n int) SERVER wedge_self OPTIONS (table_name 'wedge');"
			 "GRANT ALL ON wedge_far TO wedge_plain", PQport(connection), PQdb(connection), PQuser(connection));
	PQclear(PQexec(connection, sql));
	if (*PQerrorMessage(connection))
		fprintf(stderr, "wedge: without connections to its own server: %s", PQerrorMessage(connection));
}

int
main(int argc, char **argv)
{
	int			clients = argc > 2 ? atoi(argv[2]) : 60;
	int			seconds = argc > 3 ? atoi(argv[3]) : 600;
	unsigned	seed = argc > 4 ? atoi(argv[4]) : (unsigned) getpid();
	time_t		end = time(NULL) + seconds;
	double		longest = 0;
	long		beyond = 0;
	double		allowed;
	int			left;
	PGconn	   *connection;

	if (argc < 2)
	{
		fprintf(stderr, "usage: wedge CONNINFO [CLIENTS [SECONDS [SEED [LATE]]]]\n");
		return 2;
	}
	conninfo = argv[1];
	connection = connect_to_server();
	PQsetNoticeProcessor(connection, ignore, NULL);
	make_tables(connection);
	allowed = ask(connection, "SELECT setting::float FROM pg_settings WHERE name = 'pg_governor.queue_timeout'") +
		1000.0 * (argc > 5 ? atoi(argv[5]) : 1);
	steps_done = mmap(NULL, sizeof(long), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	printf("seed %u\n", seed);
	fflush(stdout);
	for (int i = 0; i < clients; i++)
		if (fork() == 0)
		{
			client(i, seed + i, end);
			_exit(0);
		}
	left = clients;
	while (left > 0)
	{
		double		waits = ask(connection, "SELECT coalesce(max(waiting_ms), 0) FROM pg_governor_queue");

		if (waits > longest)
			longest = waits;
		beyond += waits > allowed;
		while (left > 0 && waitpid(-1, NULL, WNOHANG) > 0)
			left--;
		if (time(NULL) > end + 120)
		{
			printf("%d clients do not end\n", left);
			return 1;
		}
		usleep(100000);
	}
	printf("%d clients of %d kinds for %d s, that is %.2f h of client time, with %ld steps: the longest wait in a queue was %.0f ms, "
		   "of %.0f ms; %ld looks found a longer one\n", clients, KINDS, seconds, clients * seconds / 3600.0, *steps_done,
		   longest, allowed, beyond);
	return beyond == 0 ? 0 : 1;
}
