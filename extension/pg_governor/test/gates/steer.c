/*
 * steer.c
 *		The limit that finds itself, on plants whose best limit is known: is it found, in time, and calm?
 *
 *	steer [SEED [verbose]]
 *
 * A plant says how many transactions a second so many sessions at work carry.  What is measured of it is noisy:
 * by 6 % from one window of 150 ms to the next, with a drift beside it.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/steer.h"

#define MS INT64_C(1000)
#define SECOND INT64_C(1000000)
#define LOOK (10 * MS)
#define CPUS 2
#define MOST 256

/* Throughput with so many at work, of so many that want to. */
typedef double (*Plant) (double working, double demand);

/* A part of a run: a plant, so many clients, and for how long. */
typedef struct Stage
{
	const char *name;
	Plant		plant;
	double		demand;
	int			seconds;
	double		service_ms;		/* with a free machine */
	double		share;			/* of the best throughput, from ten seconds after the stage began on */
} Stage;

static double noise_state;
static uint64_t random_state;
static int	verbose = 0;

static double uniform(void);
static double normal(void);
static double best_of(const Stage *stage);
static int	run(const char *name, const Stage *stages, int count, int freezes);

/* Few rows: each one more waits for the others, and beyond a dozen they take time from each other. */
static double
hot(double n, double demand)
{
	return 1400 * n / (1 + 0.12 * (n - 1) + 0.006 * n * (n - 1));
}

/* Many rows: two CPUs, and the queue itself costs a fifth where there is one. */
static double
spread(double n, double demand)
{
	return 6500 * n / (n + 1.2) * (n < demand * 0.98 ? 0.82 : 1);
}

/* The same with thousands, who all want to run at once: caches and switches. */
static double
crowd(double n, double demand)
{
	return 6500 * n / (n + 1.2) / (1 + n / 900);
}

/* The disk has 64 heads. */
static double
disk(double n, double demand)
{
	return 40 * fmin(n, 64) * (1 - 0.0002 * n);
}

static const Stage all_hot[] = {{"hot rows", hot, 2048, 240, 1, 0.93}};
static const Stage all_spread[] = {{"spread rows", spread, 128, 240, 1, 0.95}};
static const Stage all_crowd[] = {{"a crowd", crowd, 2048, 240, 1, 0.93}};
static const Stage all_disk[] = {{"disk", disk, 512, 240, 25, 0.95}};
static const Stage few[] = {{"fewer than the CPUs have room for", spread, 7, 60, 1, 0.99}};
static const Stage steps[] = {
	{"spread", spread, 64, 60, 1, 0.9},
	{"step to hot", hot, 1024, 60, 1, 0.8},
	{"step to few", spread, 12, 60, 1, 0.9},
	{"step to disk", disk, 256, 60, 25, 0.7},
	{"step back to hot", hot, 512, 60, 1, 0.8},
};

int
main(int argc, char **argv)
{
	int			failed = 0;

	random_state = (argc > 1 ? strtoull(argv[1], NULL, 10) : 1) * UINT64_C(0x9E3779B97F4A7C15) + 1;
	verbose = argc > 2;
	failed += run("hot", all_hot, 1, 0);
	failed += run("spread", all_spread, 1, 0);
	failed += run("crowd", all_crowd, 1, 0);
	failed += run("disk", all_disk, 1, 0);
	failed += run("few", few, 1, 0);
	failed += run("steps", steps, sizeof(steps) / sizeof(*steps), 0);
	failed += run("hot, frozen now and then", all_hot, 1, 1);
	printf("7 runs of a limit that finds itself: %d failed\n", failed);
	return failed != 0;
}

static int
run(const char *name, const Stage *stages, int count, int freezes)
{
	GovernorSteer steer;
	int64_t		now = SECOND;
	double		admitted = 0;
	double		working = 0;
	double		demand_average = 0;
	int			failed = 0;
	uint32_t	limit = 0;

	governor_steer_begin(&steer, 0);
	for (int s = 0; s < count; s++)
	{
		const Stage *stage = &stages[s];
		int64_t		began = now;
		double		best = best_of(stage);
		double		sum = 0;
		int			looks = 0;
		uint32_t	lowest = MOST;
		uint32_t	highest = 0;
		double		found_sum = 0;
		int			found_looks = 0;

		while (now - began < stage->seconds * SECOND)
		{
			GovernorSteerSight sight = {.least = CPUS, .most = MOST, .start = 16 * CPUS, .service_us = 0};
			double		target = fmin(limit, stage->demand);
			double		rate;

			/* A monitor that is gone for a while, and another one in its place; a machine that stands still. */
			if (freezes && (now / LOOK) % 1500 == 0)
			{
				GovernorSteer anew;

				governor_steer_begin(&anew, governor_steer_found(&steer));
				steer = anew;
				now += 7 * SECOND;
				began += 7 * SECOND;
			}
			/* Who is there too many goes within a service or two. */
			working += (target - working) * fmin(1, LOOK / (stage->service_ms * MS + LOOK));
			noise_state += -noise_state * 0.005 + normal() * 0.003;
			rate = stage->plant(fmax(1, working), stage->demand);
			admitted += rate * (LOOK / 1e6) * exp(normal() * 0.23 + noise_state * 0.3);
			now += LOOK;
			sight.now = now;
			sight.admitted = (uint64_t) admitted;
			demand_average += (stage->demand * (1 + 0.05 * normal()) - demand_average) / 8;
			sight.demand = demand_average;
			if (stage->demand > limit)
				sight.service_us = (int64_t) (working / rate * 1e6);
			limit = governor_steer(&steer, &sight);
			if (limit < CPUS || limit > MOST)
			{
				printf("%s, %s: a limit of %u\n", name, stage->name, limit);
				return 1;
			}
			if (now - began > 10 * SECOND)
			{
				sum += rate;
				looks++;
			}
			/* The last minute, when it should be calm. */
			if (count == 1 && now - began > (stage->seconds - 60) * SECOND)
			{
				/* More than there are clients is no limit. */
				uint32_t	felt = (uint32_t) fmin(limit, stage->demand);

				lowest = felt < lowest ? felt : lowest;
				highest = felt > highest ? felt : highest;
				found_sum += fmin(governor_steer_found(&steer), stage->demand);
				found_looks++;
			}
			if (verbose && (now - began) % SECOND == 0)
				printf("  %s %3d s: limit %u, found %u, %.0f a second of %.0f%s\n", stage->name,
					   (int) ((now - began) / SECOND), limit, governor_steer_found(&steer), rate, best,
					   steer.phase == GOVERNOR_STEER_PROBES ? ", probes" : "");
		}
		printf("%-26s %-34s found %3u: %.3f of the best", name, stage->name, governor_steer_found(&steer), sum / looks / best);
		if (sum / looks / best < stage->share)
		{
			printf(", and not %.2f", stage->share);
			failed = 1;
		}
		if (found_looks > 0)
		{
			double		mean = found_sum / found_looks;

			printf(", limits %u to %u", lowest, highest);
			/* Small limits move by one. */
			if (highest > fmax(mean * 1.2 + 0.5, mean + 2) || lowest < fmin(mean * 0.8 - 0.5, mean - 2))
			{
				printf(", which is not calm around %.1f", mean);
				failed = 1;
			}
		}
		printf("\n");
	}
	return failed;
}

static double
best_of(const Stage *stage)
{
	double		best = 0;

	for (int n = CPUS; n <= MOST; n++)
		best = fmax(best, stage->plant(fmin(n, stage->demand), stage->demand));
	return best;
}

static double
uniform(void)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return ((random_state >> 11) + 0.5) / 9007199254740992.0;
}

static double
normal(void)
{
	return sqrt(-2 * log(uniform())) * cos(2 * M_PI * uniform());
}
