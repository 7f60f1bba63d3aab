/*
 * cancel.c
 *		A monitor cancels the transactions of a session again and again, often at the moment at which they end, with
 *		delays between the steps of both: no other transaction is ever cancelled.
 *
 *	cancel [TRANSACTIONS]		20,000 without an argument
 *
 * Before that, which session is a culprit.
 */
#include "server.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/cancel.h"
#include "../../src/culprit.h"
#include "../../src/delay.h"
#include "../../src/session.h"
#include "../../src/slot.h"
#include "../../src/word.h"

volatile sig_atomic_t QueryCancelPending = false;
GovernorSession *governor_my_session;

/* What the monitor has tried and done, and what came of it. */
typedef struct Outcome
{
	pg_atomic_uint64 meant;		/* the word of the transaction that is to be cancelled */
	pg_atomic_uint32 sent;
	pg_atomic_uint32 cancelled;
	pg_atomic_uint32 innocent;
} Outcome;

static Outcome *outcome;

static bool culprits_are_found(void);
static void monitor(void);
static int	session(int transactions);
static void interrupt(int signal);

int
main(int argc, char **argv)
{
	int			transactions = argc > 1 ? atoi(argv[1]) : 20000;
	pid_t		monitor_pid;
	int			status;
	bool		right;

	if (!culprits_are_found())
		return 1;
	server_start(1, 1);
	outcome = server_memory(sizeof(*outcome));
	pg_atomic_write_u32(&governor_gate_at(GOVERNOR_TRANSACTION)->capacity, 1);
	governor_my_session = governor_session_at(0);
	governor_my_session->may_be_cancelled = true;
	if (fork() == 0)
		_exit(session(transactions));
	monitor_pid = fork();
	if (monitor_pid == 0)
		monitor();
	waitpid(-1, &status, 0);
	kill(monitor_pid, SIGKILL);
	wait(NULL);
	right = status == 0 && pg_atomic_read_u32(&outcome->innocent) == 0 &&
		pg_atomic_read_u32(&outcome->cancelled) > 0 &&
		pg_atomic_read_u32(&outcome->sent) > pg_atomic_read_u32(&outcome->cancelled);
	printf("%d transactions, %u cancels sent: %u came in time, and %u hit another transaction%s\n", transactions,
		   pg_atomic_read_u32(&outcome->sent), pg_atomic_read_u32(&outcome->cancelled),
		   pg_atomic_read_u32(&outcome->innocent), right ? "" : ": failed");
	return right ? 0 : 1;
}

static bool
culprits_are_found(void)
{
	static const struct
	{
		const char *name;
		GovernorBlame blame;
		bool		culprit;
	}			cases[] = {
		{"a holder of a lock that half of the slots wait for", {4, 8, 100, 1000}, true},
		{"fewer than half", {3.9, 8, 100, 1000}, false},
		{"not for long enough", {4, 8, 100, 999}, false},
		{"nobody queues", {4, 8, 0, 1000}, false},
		{"long work in the only slot", {1, 1, 100, 1000000}, false},
		{"one of two that share a lock, half each", {2, 8, 100, 1000000}, false},
	};
	bool		right = true;

	for (int i = 0; i < (int) lengthof(cases); i++)
		if (governor_culprit_is(cases[i].blame, 1000) != cases[i].culprit)
		{
			printf("culprit: %s\n", cases[i].name);
			right = false;
		}
	return right;
}

static void
monitor(void)
{
	server_seed(1);
	for (;;)
	{
		uint64		seen = pg_atomic_read_u64(governor_word_at(0));

		if (governor_word_state(seen) != GOVERNOR_RUNNING || governor_cancel_is_asked(governor_session_at(0)) ||
			governor_session_at(0)->pid == 0)
			continue;
		pg_atomic_write_u64(&outcome->meant, seen);
		pg_memory_barrier();
		if (server_random(4) == 0)
			governor_delay();
		if (governor_cancel_send(0, seen, 2, 2))
			pg_atomic_fetch_add_u32(&outcome->sent, 1);
	}
}

static int
session(int transactions)
{
	server_seed(2);
	signal(SIGINT, interrupt);
	governor_my_session->pid = getpid();
	for (int i = 0; i < transactions; i++)
	{
		if (governor_slot_take(0, GOVERNOR_TRANSACTION, GOVERNOR_ROLE_ANY) != GOVERNOR_ENTERED)
			return 1;
		/* What was meant for the last one would end this one. */
		if (QueryCancelPending && pg_atomic_read_u64(&outcome->meant) != pg_atomic_read_u64(governor_word_at(0)))
			pg_atomic_fetch_add_u32(&outcome->innocent, 1);
		for (uint32 step = server_random(20); step > 0 && !QueryCancelPending; step--)
			governor_delay();
		if (QueryCancelPending)
			pg_atomic_fetch_add_u32(&outcome->cancelled, 1);
		QueryCancelPending = false;
		GOVERNOR_DELAY();
		governor_slot_release(0);
		GOVERNOR_DELAY();
		governor_cancel_settle();
		GOVERNOR_DELAY();
	}
	governor_my_session->pid = 0;
	return 0;
}

/* As in the server it is a note, which is read later. */
static void
interrupt(int signal pg_attribute_unused())
{
	uint64		word = pg_atomic_read_u64(governor_word_at(0));

	if (governor_word_state(word) == GOVERNOR_RUNNING && word != pg_atomic_read_u64(&outcome->meant))
		pg_atomic_fetch_add_u32(&outcome->innocent, 1);
	QueryCancelPending = true;
}

/* Of the server; the first two for what is told to a client, which nobody is here. */
char *
MemoryContextStrdup(MemoryContext context pg_attribute_unused(), const char *text)
{
	return strdup(text);
}

char *
psprintf(const char *format,...)
{
	return (char *) format;
}

void
pg_usleep(long us)
{
	usleep(us);
}
