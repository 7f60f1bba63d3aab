/*
 * advise.c
 *		What limit is advised for which load: a table.
 */
#include "server.h"

#include <stdio.h>

#include "../../src/advice.h"

typedef struct Case
{
	const char *load;
	GovernorSample sample;
	GovernorClass class;
	int			cores;
	GovernorVerdict verdict;
	int			limit;
} Case;

/* 1,000 looks; sums are sessions × looks */
static const Case cases[] = {
	{"looked at for too short", {.looks = 99, .sessions = 99000, .on_cpu = 99000, .sessions_max = 1000},
	GOVERNOR_TRANSACTION, 4, GOVERNOR_ADVICE_TOO_SHORT, 0},
	{"nobody", {.looks = 1000}, GOVERNOR_TRANSACTION, 4, GOVERNOR_ADVICE_NO_LIMIT, 0},
	{"few sessions", {.looks = 1000, .sessions = 6000, .on_cpu = 6000, .sessions_max = 8},
	GOVERNOR_TRANSACTION, 4, GOVERNOR_ADVICE_NO_LIMIT, 0},
	{"many compete for the CPU", {.looks = 1000, .sessions = 500000, .on_cpu = 500000, .sessions_max = 512},
	GOVERNOR_TRANSACTION, 4, GOVERNOR_ADVICE_CPU, 32},
	{"many, half of the time on the CPU", {.looks = 1000, .sessions = 500000, .on_cpu = 250000,
	.on_flush = 250000, .sessions_max = 512}, GOVERNOR_TRANSACTION, 4, GOVERNOR_ADVICE_CPU, 32},
	{"many that mostly wait for their clients", {.looks = 1000, .sessions = 500000, .on_cpu = 50000,
	.outside = 450000, .sessions_max = 512}, GOVERNOR_TRANSACTION, 4, GOVERNOR_ADVICE_WAITS, 64},
	{"a sixth of the time on the CPU", {.looks = 1000, .sessions = 600000, .on_cpu = 100000,
	.on_flush = 500000, .sessions_max = 512}, GOVERNOR_TRANSACTION, 4, GOVERNOR_ADVICE_WAITS, 48},
	{"many that mostly wait, outside of blocks", {.looks = 1000, .sessions = 500000, .on_cpu = 50000,
	.outside = 450000, .sessions_max = 512}, GOVERNOR_QUERY, 4, GOVERNOR_ADVICE_WAITS, 8},
	{"hot rows", {.looks = 1000, .sessions = 500000, .on_cpu = 50000, .on_locks = 450000,
	.sessions_max = 512}, GOVERNOR_TRANSACTION, 2, GOVERNOR_ADVICE_LOCKS, 16},
	{"all wait outside", {.looks = 1000, .sessions = 500000, .outside = 500000, .sessions_max = 512},
	GOVERNOR_TRANSACTION, 2, GOVERNOR_ADVICE_WAITS, 32},
};

int
main(void)
{
	int			failed = 0;

	for (int i = 0; i < (int) lengthof(cases); i++)
	{
		const Case *one = &cases[i];
		GovernorAdvice advice = governor_advise(&one->sample, one->class, one->cores);

		if (advice.verdict == one->verdict && advice.limit == one->limit)
			continue;
		failed++;
		printf("%s: verdict %d and limit %d, expected %d and %d\n", one->load, advice.verdict,
			   advice.limit, one->verdict, one->limit);
	}
	printf("%d cases of advice, %d failed\n", (int) lengthof(cases), failed);
	return failed;
}
