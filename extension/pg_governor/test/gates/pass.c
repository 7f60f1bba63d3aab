/*
 * pass.c
 *		What it costs to pass a gate: one slot taken and released, on the gates' own
 *		code, without a server.
 *
 *	pass [PROCESSES]		from 1 to as many as there are cores without an argument
 *
 * "one gate": all processes pass the same gate, as the sessions of one pool do.
 * "own gates": each has a gate to itself, which is what the cache lines cost when
 * nobody else wants them.
 */
#include "server.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/clock.h"
#include "../../src/slot.h"

#define ROUNDS 7
#define ROUND_US 200000
#define POOLS_MAX 128

/* Over all processes of a round. */
typedef struct Sum
{
	pg_atomic_uint64 passes;
	pg_atomic_uint64 cpu_ns;
} Sum;

static double pass_ns(int processes, bool own_gates);
static void pass_until(int me, int gate, int64 until, Sum *sum);
static uint64 cpu_ns(void);
static int	compare(const void *a, const void *b);

int
main(int argc, char **argv)
{
	int			cores = (int) sysconf(_SC_NPROCESSORS_ONLN);
	int			most = argc > 1 ? atoi(argv[1]) : cores;

	most = Max(1, Min(most, POOLS_MAX));
	server_start(POOLS_MAX, POOLS_MAX);
	for (int gate = 0; gate < governor_gate_count(); gate++)
	{
		pg_atomic_write_u32(&governor_gate_at(gate)->limit, POOLS_MAX);
		pg_atomic_write_u32(&governor_gate_at(gate)->capacity, POOLS_MAX);
	}
	printf("%d cores; median of %d rounds of %d ms; CPU time of one process for one pass\n",
		   cores, ROUNDS, ROUND_US / 1000);
	printf("processes  one gate    own gates\n");
	for (int processes = 1; processes <= most; processes = processes < most && processes * 2 > most ?
		 most : processes * 2)
		printf("%9d  %7.1f ns  %7.1f ns\n", processes, pass_ns(processes, false),
			   pass_ns(processes, true));
	return 0;
}

static double
pass_ns(int processes, bool own_gates)
{
	double		rounds[ROUNDS];

	for (int round = 0; round < ROUNDS; round++)
	{
		Sum		   *sum = server_memory(sizeof(Sum));
		int64		until = governor_now_us() + ROUND_US;

		for (int i = 0; i < processes; i++)
			if (fork() == 0)
			{
				pass_until(i, (own_gates ? i : 0) * GOVERNOR_CLASSES, until, sum);
				_exit(0);
			}
		for (int i = 0; i < processes; i++)
			wait(NULL);
		rounds[round] = (double) pg_atomic_read_u64(&sum->cpu_ns) / pg_atomic_read_u64(&sum->passes);
		munmap(sum, sizeof(Sum));
	}
	qsort(rounds, ROUNDS, sizeof(double), compare);
	return rounds[ROUNDS / 2];
}

static void
pass_until(int me, int gate, int64 until, Sum *sum)
{
	uint64		passes = 0;
	uint64		began = cpu_ns();

	while (governor_now_us() < until)
		for (int i = 0; i < 1000; i++, passes++)
		{
			governor_slot_take(me, gate, GOVERNOR_ROLE_ANY);
			governor_slot_release(me);
		}
	pg_atomic_fetch_add_u64(&sum->cpu_ns, cpu_ns() - began);
	pg_atomic_fetch_add_u64(&sum->passes, passes);
}

/* CPU time of this process, so that others on the machine do not count. */
static uint64
cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec * UINT64CONST(1000000000) + now.tv_nsec;
}

static int
compare(const void *a, const void *b)
{
	double		left = *(const double *) a;
	double		right = *(const double *) b;

	return (left > right) - (left < right);
}
