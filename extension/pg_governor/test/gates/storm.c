/*
 * storm.c
 *		Processes run transactions on the gates' own code, without a server, with
 *		delays at random between every two atomic steps.
 *
 *	storm [TRANSACTIONS] [SEED]		200,000 transactions without an argument
 *
 * Sessions change their pool, class and role, keep slots warm, give up waiting,
 * end, and begin again in another process slot.  A monitor applies its rules, and at
 * random it takes slots back, lets waiters in, and changes limits and weights.  A viewer counts sessions as the views do.  Meanwhile not one check
 * may find a difference, no index may be that of no gate or pool, and in the end no
 * slot may be taken.
 */
#include "server.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/check.h"
#include "../../src/gate.h"
#include "../../src/look.h"
#include "../../src/share.h"
#include "../../src/slot.h"
#include "../../src/tally.h"
#include "../../src/word.h"

#define POOLS 3
#define PROCESSES 12
#define SLOTS 16
#define RESERVED 2

/* Beside the governor's state: which process slots are in use, and how far we are. */
typedef struct Storm
{
	pg_atomic_uint32 used[SLOTS];
	pg_atomic_uint64 left;
	pg_atomic_uint64 waits;
	pg_atomic_uint64 given_up;
	pg_atomic_uint64 taken_back;
	pg_atomic_uint64 booked;
	pg_atomic_uint64 failures;
} Storm;

static Storm *storm;

static void session(uint32 seed);
static void transaction(int me);
static void wait_or_give_up(int me);
static void end_transaction(int me);
static int	find_slot(void);
static void become(int me);
static void end(int me);
static void monitor(uint32 seed);
static void viewer(uint32 seed);
static void handle(int index);
static void set_limits(bool wide);
static void settle_limits(void);
static int	count_left(void);
static int	repairs_what_is_wrong(void);

int
main(int argc, char **argv)
{
	uint64		transactions = argc > 1 ? strtoull(argv[1], NULL, 10) : 200000;
	uint32		seed = argc > 2 ? strtoul(argv[2], NULL, 10) : (uint32) getpid();
	pid_t		processes[PROCESSES + 2];
	int			failed = 0;

	server_start(POOLS, SLOTS);
	server_procs_start();
	storm = server_memory(sizeof(Storm));
	pg_atomic_init_u64(&storm->left, transactions);
	set_limits(false);
	printf("seed %u\n", seed);
	fflush(stdout);
	for (int i = 0; i <= PROCESSES + 1; i++)
	{
		processes[i] = fork();
		if (processes[i] == 0)
		{
			if (i == PROCESSES + 1)
				viewer(seed + i);
			else if (i == PROCESSES)
				monitor(seed + i);
			else
				session(seed + i);
			_exit(0);
		}
	}
	for (int i = 0; i <= PROCESSES + 1; i++)
	{
		int			status;

		wait(&status);
		if (status != 0 && failed++ == 0)
			/* the others may wait for it for ever; those that are gone do not matter */
			for (int j = 0; j <= PROCESSES + 1; j++)
				kill(processes[j], SIGKILL);
	}
	if (failed > 0)
	{
		printf("a process failed\n");
		return 1;
	}
	printf("%llu transactions, %llu waits, %llu given up, %llu taken back, %llu booked\n",
		   (unsigned long long) transactions, (unsigned long long) pg_atomic_read_u64(&storm->waits),
		   (unsigned long long) pg_atomic_read_u64(&storm->given_up),
		   (unsigned long long) pg_atomic_read_u64(&storm->taken_back),
		   (unsigned long long) pg_atomic_read_u64(&storm->booked));
	failed += pg_atomic_read_u64(&storm->failures);
	failed += count_left();
	if (failed == 0)
		failed += repairs_what_is_wrong();
	printf(failed == 0 ? "exact\n" : "NOT exact: %d failures\n", failed);
	return failed == 0 ? 0 : 1;
}

static void
session(uint32 seed)
{
	int			me;

	server_seed(seed);
	me = find_slot();
	become(me);
	for (;;)
	{
		uint64		left = pg_atomic_read_u64(&storm->left);

		if (left == 0)
			break;
		if (!pg_atomic_compare_exchange_u64(&storm->left, &left, left - 1))
			continue;
		transaction(me);
		if (server_random(200) == 0)
		{
			/* the session ends, and another process slot is used next */
			end(me);
			me = find_slot();
			become(me);
		}
	}
	end(me);
}

static void
become(int me)
{
	GovernorSession *session = governor_session_at(me);

	session->discounted = false;
	session->pool = server_random(POOLS);
	session->pid = getpid();
}

static void
end(int me)
{
	governor_slot_release(me);
	governor_session_at(me)->pool = GOVERNOR_NOBODY;
	governor_session_at(me)->pid = 0;
	pg_memory_barrier();
	pg_atomic_write_u32(&storm->used[me], 0);
}

static void
transaction(int me)
{
	int			gate = server_random(POOLS) * GOVERNOR_CLASSES + server_random(GOVERNOR_CLASSES);
	int			role;

	governor_session_at(me)->pool = gate / GOVERNOR_CLASSES;
	governor_session_at(me)->statements++;
	pg_atomic_write_u64(&governor_session_at(me)->admits_free[server_random(GOVERNOR_CLASSES)], 1);
	role = server_random(4);

	if (governor_slot_resume(me))
	{
		if (server_random(2) == 0)
		{
			end_transaction(me);
			return;
		}
	}
	governor_slot_release(me);
	if (server_random(32) == 0)
	{
		governor_slot_book(me, gate, role);
		pg_atomic_fetch_add_u64(&storm->booked, 1);
		end_transaction(me);
		return;
	}
	switch (governor_slot_take(me, gate, role))
	{
		case GOVERNOR_OPEN:
			return;
		case GOVERNOR_ENTERED:
			break;
		case GOVERNOR_FULL:
			if (server_random(16) == 0 && governor_slot_take_reserved(me, gate, RESERVED))
				break;
			if (governor_gate_join(gate, me, role, (server_random(8) == 0 ? GOVERNOR_OBSERVED : 0) |
								   (server_random(8) == 0 ? GOVERNOR_HOLDING : 0)) == GOVERNOR_JOINED)
				wait_or_give_up(me);
			break;
	}
	for (int work = server_random(32); work > 0; work--)
		pg_spin_delay();
	end_transaction(me);
}

static void
wait_or_give_up(int me)
{
	int			patience = 1 + server_random(3000);

	pg_atomic_fetch_add_u64(&storm->waits, 1);
	if (pg_atomic_read_u64(governor_word_at(me)) & GOVERNOR_OBSERVED)
		return;
	while (governor_state_of(me) == GOVERNOR_QUEUED || governor_state_of(me) == GOVERNOR_ENTERING)
	{
		if (patience-- == 0)
		{
			pg_atomic_fetch_add_u64(&storm->given_up, 1);
			governor_slot_end(me, GOVERNOR_LEAVE_CANCELLED);
			return;
		}
		sched_yield();
	}
}

static void
end_transaction(int me)
{
	uint64		word = pg_atomic_read_u64(governor_word_at(me));

	switch (governor_word_state(word))
	{
		case GOVERNOR_RUNNING:
			if (server_random(3) != 0 || !governor_slot_keep_warm(me))
				governor_slot_release(me);
			break;
		default:
			governor_slot_end(me, GOVERNOR_LEAVE_OBSERVED);
			break;
	}
}

static int
find_slot(void)
{
	for (;;)
	{
		int			index = server_random(SLOTS);
		uint32		unused = 0;

		if (pg_atomic_compare_exchange_u32(&storm->used[index], &unused, 1))
			return index;
	}
}

static void
monitor(uint32 seed)
{
	server_seed(seed);
	governor_look_start();
	while (pg_atomic_read_u64(&storm->left) > 0)
	{
		if (server_random(4) == 0)
			governor_look(GOVERNOR_LOOK_AT_LOCKS | GOVERNOR_LOOK_SAMPLE);
		for (int i = 0; i < SLOTS; i++)
			handle(i);
		if (server_random(50) == 0)
			set_limits(server_random(4) == 0);
		for (int gate = 0; gate < governor_gate_count(); gate++)
			governor_gate_admit_free(gate);
		if (server_random(50) == 0)
			governor_gate_admit_stalled(server_random(governor_gate_count()));
		if (server_random(4) == 0)
			governor_share_hand_on();
		if (server_random(4) == 0)
			pg_atomic_fetch_add_u64(&storm->failures, governor_check_and_repair());
	}
	/* sessions that wait now wait for nobody */
	settle_limits();
	for (int round = 0; round < 200; round++)
	{
		for (int gate = 0; gate < governor_gate_count(); gate++)
			governor_gate_admit_free(gate);
		usleep(500);
	}
}

/* Whatever it counts belongs to a gate that there is: nothing beside the tallies changes. */
static void
viewer(uint32 seed)
{
	server_seed(seed);
	while (pg_atomic_read_u64(&storm->left) > 0)
	{
		static const GovernorTally nothing[GOVERNOR_CLASSES];
		struct
		{
			GovernorTally before[GOVERNOR_CLASSES];
			GovernorTally gates[POOLS * GOVERNOR_CLASSES];
			GovernorTally after[GOVERNOR_CLASSES];
		}			tallies = {0};

		governor_tally_sessions(tallies.gates, POOLS * GOVERNOR_CLASSES);
		if (memcmp(tallies.before, nothing, sizeof(nothing)) != 0 ||
			memcmp(tallies.after, nothing, sizeof(nothing)) != 0)
			pg_atomic_fetch_add_u64(&storm->failures, 1);
		usleep(50);
	}
}

/* What the rules could do with a session, at random. */
static void
handle(int index)
{
	uint64		word = pg_atomic_read_u64(governor_word_at(index));

	switch (governor_word_state(word))
	{
		case GOVERNOR_WARM:
			if (server_random(3) == 0 && governor_slot_take_back(index, word))
				pg_atomic_fetch_add_u64(&storm->taken_back, 1);
			break;
		case GOVERNOR_QUEUED:
			if (server_random(20) == 0)
				governor_gate_run_anyway(index, server_random(2) == 0 ?
										 GOVERNOR_BY_BLOCKING : GOVERNOR_BY_TIMEOUT);
			break;
		default:
			break;
	}
}

static void
set_limits(bool wide)
{
	for (int i = 0; i < governor_gate_count(); i++)
	{
		GovernorGate *gate = governor_gate_at(i);
		uint32		limit = wide ? server_random(3) * 8 : 1 + server_random(2);

		pg_atomic_write_u32(&gate->limit, limit);
		pg_atomic_write_u32(&gate->capacity, limit);
		pg_atomic_write_u32(&gate->hard_max, limit * 3);
		pg_atomic_write_u32(&gate->ceiling, limit * 3);
		pg_atomic_write_u32(&gate->role_slots, server_random(3));
		pg_atomic_write_u32(&governor_pool_of_gate(i)->weight, 1 + server_random(3));
	}
	pg_atomic_write_u32(&governor->total_capacity, server_random(2) * (1 + server_random(6)));
}

static void
settle_limits(void)
{
	for (int i = 0; i < governor_gate_count(); i++)
	{
		/* Without a limit the rules leave the capacity at 0, which is open. */
		pg_atomic_write_u32(&governor_gate_at(i)->limit, 0);
		pg_atomic_write_u32(&governor_gate_at(i)->capacity, 0);
	}
	pg_atomic_write_u32(&governor->total_capacity, 0);
}

/* How many counters and queues are not empty at the end. */
static int
count_left(void)
{
	int			left = 0;

	for (int i = 0; i < governor_gate_count(); i++)
	{
		GovernorGate *gate = governor_gate_at(i);

		left += pg_atomic_read_u64(&gate->occupancy) != 0;
		left += gate->waiting_roles != 0;
		for (int role = 0; role < GOVERNOR_ROLES; role++)
			left += pg_atomic_read_u32(&gate->role_taken[role]) != 0 || gate->role_queued[role] != 0 ||
				gate->heads[role] != GOVERNOR_NOBODY || gate->tails[role] != GOVERNOR_NOBODY;
	}
	left += pg_atomic_read_u32(&governor->total_taken) != 0;
	left += pg_atomic_read_u32(&governor->reserved_taken) != 0;
	for (int i = 0; i < SLOTS; i++)
		left += governor_state_of(i) != GOVERNOR_IDLE;
	return left;
}

/* Counters that are wrong are found and put right. */
static int
repairs_what_is_wrong(void)
{
	GovernorGate *gate = governor_gate_at(GOVERNOR_TRANSACTION);

	pg_atomic_fetch_add_u64(&gate->occupancy, 1);
	pg_atomic_fetch_sub_u64(&governor_gate_at(GOVERNOR_QUERY)->occupancy, 1);
	pg_atomic_fetch_add_u32(&governor->total_taken, 2);
	pg_atomic_fetch_add_u32(&governor->reserved_taken, 1);
	pg_atomic_write_u32(&gate->role_slots, 1);
	pg_atomic_fetch_add_u32(&gate->role_taken[2], 1);
	if (governor_check_and_repair() != 5 || count_left() != 0)
	{
		printf("what is wrong is not repaired\n");
		return 1;
	}
	return governor_check_and_repair();
}
