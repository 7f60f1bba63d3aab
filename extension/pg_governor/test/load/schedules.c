/*
 * schedules.c
 *		Random schedules of what disturbs a gate, while clients count how many of them are at work.
 *
 *	schedules CONNINFO SCHEDULES SEED SUPERUSER
 *
 * The server has pg_governor.strict on, and no reserved slots.  Clients, as role "plain", run blocks, and chain some.  A client is at work from the
 * answer to the first statement of its block until it sends the next one: it has a slot then, which nothing takes away.
 * Meanwhile sessions are cancelled and frozen, the whole pool is paused and resumed, the limit is changed by reloads, and a
 * standby is promoted.  Clients at work beyond the limit, or during a pause that has returned, are counted.
 * The exit code is 0 if there were none.
 */
#include <libpq-fe.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#include <unistd.h>

#define CLIENTS 12
#define ACTS 12

/* What clients and the one that disturbs them have in common. */
typedef struct Shared
{
	atomic_int	at_work;
	atomic_int	bound;			/* that many may be */
	atomic_int	paused;			/* none may be */
	atomic_int	stop;
	atomic_long blocks;
	atomic_long beyond;			/* the errors: beyond the limit, */
	atomic_long in_pause;		/* and in a pause */
	atomic_int	pids[CLIENTS];	/* of their backends */
} Shared;

static Shared *shared;
static const char *conninfo;
static PGconn *control;
static int	limit;

static PGconn *
connect_to_server(const char *user)
{
	char		all[1000];
	PGconn	   *connection;

	snprintf(all, sizeof(all), "%s user=%s", conninfo, user);
	connection = PQconnectdb(all);

	if (PQstatus(connection) != CONNECTION_OK)
	{
		fprintf(stderr, "schedules: connecting failed: %s", PQerrorMessage(connection));
		exit(2);
	}
	return connection;
}

static void
ignore(void *arg, const char *message)
{
}

/* Whether it succeeds. */
static int
run(PGconn *connection, const char *sql)
{
	PGresult   *result = PQexec(connection, sql);
	ExecStatusType status = PQresultStatus(result);

	PQclear(result);
	return status == PGRES_COMMAND_OK || status == PGRES_TUPLES_OK;
}

/* The first value that a query returns, which has to succeed. */
static long
ask(const char *sql)
{
	PGresult   *result = PQexec(control, sql);
	long		value;

	if (PQresultStatus(result) != PGRES_TUPLES_OK)
	{
		fprintf(stderr, "schedules: %s: %s", sql, PQerrorMessage(control));
		exit(2);
	}
	value = atol(PQgetvalue(result, 0, 0));
	PQclear(result);
	return value;
}

static void
must(const char *sql)
{
	if (!run(control, sql))
	{
		fprintf(stderr, "schedules: %s: %s", sql, PQerrorMessage(control));
		exit(2);
	}
}

/* It has a slot, and the server waits for what it sends next. */
static void
work(void)
{
	int			others = atomic_fetch_add(&shared->at_work, 1);

	if (others + 1 > atomic_load(&shared->bound))
		atomic_fetch_add(&shared->beyond, 1);
	for (int i = 0; i < 4; i++)
	{
		usleep(random() % 300);
		if (atomic_load(&shared->paused))
			atomic_fetch_add(&shared->in_pause, 1);
	}
	atomic_fetch_sub(&shared->at_work, 1);
	atomic_fetch_add(&shared->blocks, 1);
}

static void
client(int me, unsigned seed)
{
	PGconn	   *connection = connect_to_server("plain");

#ifdef __linux__
	/* It ends with the one that disturbs it. */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
#endif
	srandom(seed);
	PQsetNoticeProcessor(connection, ignore, NULL);
	atomic_store(&shared->pids[me], PQbackendPID(connection));
	while (!atomic_load(&shared->stop))
	{
		int			links = random() % 3 == 0 ? random() % 20 : 0;

		if (!run(connection, "BEGIN"))
			continue;
		while (run(connection, "SELECT 1"))
		{
			work();
			if (links-- <= 0 || !run(connection, "COMMIT AND CHAIN"))
				break;
		}
		if (!run(connection, "COMMIT"))
			run(connection, "ROLLBACK");
		if (PQstatus(connection) != CONNECTION_OK)
			exit(2);
	}
	PQfinish(connection);
	exit(0);
}

/* The bound is changed while no client can be beyond it. */
static void
change_limit(void)
{
	int			wanted = 1 + random() % 4;
	char		sql[200];

	if (wanted > limit)
		atomic_store(&shared->bound, wanted);
	snprintf(sql, sizeof(sql), "ALTER SYSTEM SET pg_governor.transaction_limit = %d", wanted);
	must(sql);
	ask("SELECT pg_reload_conf()");
	snprintf(sql, sizeof(sql), "SELECT count(*) FROM pg_governor_pools WHERE class = 'transaction' AND slot_limit = %d "
			 "AND capacity = slot_limit AND taken <= slot_limit", wanted);
	while (ask(sql) == 0)
		usleep(1000);
	atomic_store(&shared->bound, wanted);
	limit = wanted;
}

static void
pause_and_resume(void)
{
	must("SELECT pg_governor_pause()");
	atomic_store(&shared->paused, 1);
	usleep(random() % 30000);
	atomic_store(&shared->paused, 0);
	must("SELECT pg_governor_resume()");
}

/* A pause that is cancelled is none, or it was there before the cancel came. */
static void
pause_in_vain(void)
{
	must("SET statement_timeout = 1");
	if (run(control, "SELECT pg_governor_pause()"))
	{
		atomic_store(&shared->paused, 1);
		atomic_store(&shared->paused, 0);
	}
	/* The timeout may meet this one, too. */
	while (!run(control, "SET statement_timeout = 0"))
		;
	must("SELECT pg_governor_resume()");
}

static void
freeze(void)
{
	int			one = atomic_load(&shared->pids[random() % CLIENTS]);
	int			monitor = ask("SELECT coalesce(monitor_pid, 0) FROM pg_governor_health");
	int			with_monitor = random() % 2 && monitor > 0;

	kill(one, SIGSTOP);
	if (with_monitor)
		kill(monitor, SIGSTOP);
	/* Now and then for longer than the monitor may be silent. */
	usleep(random() % 100 == 0 ? 7000000 : random() % 60000);
	kill(one, SIGCONT);
	if (with_monitor)
		kill(monitor, SIGCONT);
}

static void
act(void)
{
	char		sql[100];

	switch (random() % 6)
	{
		case 0:
			change_limit();
			break;
		case 1:
			pause_and_resume();
			break;
		case 2:
			pause_in_vain();
			break;
		case 3:
			freeze();
			break;
		case 4:
			if (ask("SELECT pg_is_in_recovery()::int"))
				ask("SELECT pg_promote()::int");
			break;
		default:
			for (int i = random() % 20; i > 0; i--)
			{
				snprintf(sql, sizeof(sql), "SELECT pg_cancel_backend(%d)", atomic_load(&shared->pids[random() % CLIENTS]));
				must(sql);
				usleep(random() % 2000);
			}
	}
}

static int
schedule(unsigned seed)
{
	int			failed = 0;

	atomic_store(&shared->stop, 0);
	for (int i = 0; i < CLIENTS; i++)
	{
		atomic_store(&shared->pids[i], 0);
		if (fork() == 0)
			client(i, seed + i);
	}
	for (int i = 0; i < CLIENTS; i++)
		while (atomic_load(&shared->pids[i]) == 0)
			usleep(1000);
	for (int i = 0; i < ACTS; i++)
	{
		act();
		usleep(random() % 20000);
	}
	atomic_store(&shared->stop, 1);
	for (int i = 0; i < CLIENTS; i++)
	{
		int			status;

		wait(&status);
		failed += status != 0;
	}
	return failed;
}

int
main(int argc, char **argv)
{
	int			schedules = argc > 2 ? atoi(argv[2]) : 0;
	unsigned	seed = argc > 3 ? atoi(argv[3]) : 0;
	int			failed = 0;

	if (argc != 5 || schedules <= 0)
	{
		fprintf(stderr, "usage: schedules CONNINFO SCHEDULES SEED SUPERUSER\n");
		return 2;
	}
	conninfo = argv[1];
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	control = connect_to_server(argv[4]);
	PQsetNoticeProcessor(control, ignore, NULL);
	limit = ask("SELECT setting FROM pg_settings WHERE name = 'pg_governor.transaction_limit'");
	atomic_store(&shared->bound, limit);
	for (int i = 0; i < schedules && failed == 0; i++)
	{
		srandom(seed + i);
		failed = schedule((seed + i) * CLIENTS);
	}
	printf("%d schedules from seed %u, %ld blocks: %ld times a client was at work beyond the limit, %ld times in a pause; %d clients failed\n",
		   schedules, seed, atomic_load(&shared->blocks), atomic_load(&shared->beyond), atomic_load(&shared->in_pause), failed);
	return failed == 0 && atomic_load(&shared->beyond) == 0 && atomic_load(&shared->in_pause) == 0 ? 0 : 1;
}
