/*
 * rules.c
 *		Rules that are computed from few inputs: tables of inputs and what follows.
 */
#include "server.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../src/cpus.h"
#include "../../src/deadline.h"
#include "../../src/hint.h"
#include "../../src/shed.h"

typedef struct HintCase
{
	const char *text;
	bool		there;
	const char *statement;		/* the text from the statement's location on; NULL: all of it */
} HintCase;

static const HintCase hints[] = {
	{"SELECT 1", false},
	{"/*+ big_query */ SELECT 1", true},
	{" \n\t/*+big_query*/SELECT 1", true},
	{"/* why */ /*+ big_query */ SELECT 1", true},
	{"-- why\n/*+ big_query */ SELECT 1", true},
	{"/*+ big_query */ -- why\nSELECT 1", true},
	{"/*+ SeqScan(t) */ /*+ big_query */ SELECT 1", true},
	{"/*+ big_query */ /*+ SeqScan(t) */ SELECT 1", true},
	{"/*+ SeqScan(t) big_query */ SELECT 1", true},
	{"/* a /* nested */ comment */ /*+ big_query */ SELECT 1", true},
	{"/* big_query */ SELECT 1", false},
	{"-- /*+ big_query */\nSELECT 1", false},
	{"/*+ not_big_query */ SELECT 1", false},
	{"/*+ big_query2 */ SELECT 1", false},
	{"SELECT 1 /*+ big_query */", false},
	{"/*+ big_query", true},
	{"/*+ big_quer", false},
	{"--", false},
	{"", false},
	{"/*+ big_query */ SELECT 1", true, "SELECT 1"},
	{"SELECT 0; /*+ big_query */ SELECT 1", true, "SELECT 1"},
	{"SELECT 0; /*+ big_query */ SELECT 1", true, " /*+ big_query */ SELECT 1"},
	{"SELECT 0; /* a /* nested */ one */ -- why\n/*+ big_query */ -- '\n SELECT 1", true, "SELECT 1"},
	{"/*+ big_query */ SELECT 0; SELECT 1", false, "SELECT 1"},
	{"SELECT 0 /*+ big_query */; SELECT 1", false, "SELECT 1"},
	{"SELECT 0; -- /*+ big_query */\nSELECT 1", false, "SELECT 1"},
	{"SELECT 0;\n/*+ big_query -- why */\nSELECT 1", true, "SELECT 1"},
	{"*/ SELECT 1", false, "SELECT 1"},
};

typedef struct QuotaCase
{
	const char *name;
	const char *files[3][2];	/* path below the root, content */
	const char *own;
	double		cpus;
} QuotaCase;

static const QuotaCase quotas[] = {
	{"none", {{NULL}}, "/pod", 0},
	{"version 2: of the group", {{"pod/cpu.max", "150000 100000\n"}}, "/pod", 1.5},
	{"version 2: no quota", {{"pod/cpu.max", "max 100000\n"}}, "/pod", 0},
	{"version 2: of a group above", {{"pod/cpu.max", "200000 100000\n"}, {"pod/db/cpu.max", "max 100000\n"}}, "/pod/db", 2},
	{"version 2: the least one counts", {{"pod/cpu.max", "50000 100000\n"}, {"pod/db/cpu.max", "400000 100000\n"}}, "/pod/db", 0.5},
	{"version 2: of the root, as containers see it", {{"cpu.max", "300000 100000\n"}}, "/", 3},
	{"version 1", {{"cpu/cpu.cfs_quota_us", "250000\n"}, {"cpu/cpu.cfs_period_us", "100000\n"}}, "", 2.5},
	{"version 1: no quota", {{"cpu/cpu.cfs_quota_us", "-1\n"}, {"cpu/cpu.cfs_period_us", "100000\n"}}, "", 0},
	{"nonsense", {{"pod/cpu.max", "a lot\n"}}, "/pod", 0},
};

#define NONE GOVERNOR_NO_DEADLINE

static const struct
{
	GovernorDeadlines deadlines;
	GovernorForecast forecast;
	GovernorVerdict verdict;
}			deadline_cases[] = {
	/* nobody is refused without a deadline, nor by what is not known */
	{{NONE, NONE}, {9000000, 9000000}, {false}},
	{{1, 1}, {0, 9000000}, {false}},
	/* the wait alone, to the millisecond */
	{{100, NONE}, {100000, 9000000}, {false}},
	{{100, NONE}, {100001, 9000000}, {true, false, 100, 101, 1}},
	{{100, NONE}, {500000, 0}, {true, false, 100, 500, 400}},
	/* the work comes after it */
	{{NONE, 100}, {60000, 40000}, {false}},
	{{NONE, 100}, {60000, 41000}, {true, true, 100, 101, 1}},
	{{NONE, 100}, {60000, 80000}, {true, true, 100, 140, 40}},
	/* both: the one that is missed by more */
	{{50, 100}, {60000, 80000}, {true, true, 100, 140, 40}},
	{{5, 100}, {60000, 50000}, {true, false, 5, 60, 55}},
	/* not longer than until the queue is empty; what has passed already */
	{{NONE, 100}, {60000, 900000}, {true, true, 100, 960, 60}},
	{{NONE, 0}, {20, 0}, {true, true, 0, 1, 1}},
};

static int	check_hints(void);
static int	check_long_hints(void);
static int	check_quotas(void);
static void write_file(const char *root, const char *path, const char *content);
static int	check_codel(void);
static int	check_pace(void);
static int	check_slow_pace(void);
static int	check_deadlines(void);

int
main(void)
{
	int			failed = check_hints() + check_long_hints() + check_quotas() + check_codel() + check_pace() +
		check_slow_pace() + check_deadlines();

	printf("%d cases of hints, %d of quotas, %d of deadlines, and three rules of queues: %d failed\n",
		   (int) lengthof(hints), (int) lengthof(quotas), (int) lengthof(deadline_cases), failed);
	return failed;
}

static int
check_hints(void)
{
	int			failed = 0;

	for (int i = 0; i < (int) lengthof(hints); i++)
	{
		const HintCase *one = &hints[i];
		int			location = one->statement == NULL ? 0 : strlen(one->text) - strlen(one->statement);

		if (governor_hint_is_there(one->text, location, "big_query") != one->there)
		{
			printf("hint in \"%s\" from %d on: expected %d\n", one->text, location, one->there);
			failed++;
		}
	}
	return failed;
}

/* A megabyte of comments takes no time, and the hint next to the statement is found. */
static int
check_long_hints(void)
{
	const char *hint = "/*+ big_query */ ";
	int			comments = 250000;
	char	   *text = malloc(comments * 4 + strlen(hint) + 16);
	char	   *at = text;
	bool		without;
	bool		with;

	for (int i = 0; i < comments; i++, at += 4)
		memcpy(at, "/**/", 4);
	strcpy(at, "SELECT 1");
	without = governor_hint_is_there(text, at - text, "big_query") ||
		governor_hint_is_there(text, 0, "big_query");
	strcpy(at, hint);
	strcat(at, "SELECT 1");
	with = governor_hint_is_there(text, at - text + strlen(hint), "big_query");
	free(text);
	if (!without && with)
		return 0;
	printf("hints after a megabyte of comments: %d without one, %d with one\n", without, with);
	return 1;
}

static int
check_quotas(void)
{
	int			failed = 0;

	for (int i = 0; i < (int) lengthof(quotas); i++)
	{
		char		root[] = "/tmp/pg_governor_XXXXXX";
		char		command[128];
		double		cpus;

		if (mkdtemp(root) == NULL)
			return 1;
		for (int file = 0; file < 3 && quotas[i].files[file][0] != NULL; file++)
			write_file(root, quotas[i].files[file][0], quotas[i].files[file][1]);
		cpus = governor_cpus_of_quota(root, quotas[i].own);
		if (cpus != quotas[i].cpus)
		{
			printf("quota %s: %g CPUs, expected %g\n", quotas[i].name, cpus, quotas[i].cpus);
			failed++;
		}
		snprintf(command, sizeof(command), "rm -r %s", root);
		failed += system(command) != 0;
	}
	return failed;
}

static void
write_file(const char *root, const char *path, const char *content)
{
	char		name[512];
	FILE	   *file;

	for (const char *slash = strchr(path, '/'); slash != NULL; slash = strchr(slash + 1, '/'))
	{
		snprintf(name, sizeof(name), "%s/%.*s", root, (int) (slash - path), path);
		mkdir(name, 0700);
	}
	snprintf(name, sizeof(name), "%s/%s", root, path);
	file = fopen(name, "w");
	if (file == NULL)
		exit(1);
	fputs(content, file);
	fclose(file);
}

/* Target 100 ms, interval 1 s, looked at every 10 ms: who is refused when. */
static int
check_codel(void)
{
	GovernorCodel codel = {0};
	int			refused[4] = {0};

	for (int ms = 0; ms < 4000; ms += 10)
	{
		int64		wait_us = ms < 3000 ? 200000 : 50000;

		refused[ms / 1000] += governor_shed_due(&codel, ms * INT64CONST(1000), wait_us, 100000, 1000000);
	}
	/* after an interval one; then after 1 ÷ √n of it each; none once the wait is short */
	if (refused[0] == 0 && refused[1] == 1 && refused[2] == 2 && refused[3] == 0)
		return 0;
	printf("codel: %d, %d, %d, %d refused in each second\n", refused[0], refused[1], refused[2], refused[3]);
	return 1;
}

/* 100 slots a second, then none. */
static int
check_pace(void)
{
	GovernorPace pace = {0};
	uint32		place_us = 0;
	uint32		steady;

	for (int ms = 0; ms <= 2000; ms += 10)
		place_us = governor_shed_pace(&pace, (ms + 1) * INT64CONST(1000), ms / 10, place_us);
	steady = place_us;
	for (int ms = 2000; ms <= 4000; ms += 10)
		place_us = governor_shed_pace(&pace, (ms + 1) * INT64CONST(1000), 200, place_us);
	if (steady > 9000 && steady < 11000 && place_us > 150000)
		return 0;
	printf("pace: %u us for each place, then %u\n", steady, place_us);
	return 1;
}

/* A slot that is released once in two seconds takes two seconds, however often it is looked at. */
static int
check_slow_pace(void)
{
	GovernorPace pace = {0};
	uint32		place_us = 0;
	uint32		least = PG_UINT32_MAX;

	for (int ms = 0; ms <= 20000; ms += 10)
	{
		place_us = governor_shed_pace(&pace, (ms + 1) * INT64CONST(1000), ms / 2000, place_us);
		if (ms > 4000)
			least = Min(least, place_us);
	}
	if (least > 1700000 && place_us < 2300000 &&
		governor_shed_service(4, place_us, 0) > 6800000 && governor_shed_service(4, 1000, 12000) == 11000)
		return 0;
	printf("slow pace: %u to %u us for each place\n", least, place_us);
	return 1;
}

static int
check_deadlines(void)
{
	int			failed = 0;
	int64		deadline = GOVERNOR_NO_DEADLINE;

	for (int i = 0; i < (int) lengthof(deadline_cases); i++)
	{
		GovernorVerdict expected = deadline_cases[i].verdict;
		GovernorVerdict got = governor_deadline_judge(deadline_cases[i].deadlines, deadline_cases[i].forecast);

		if (got.too_late == expected.too_late && got.by_work == expected.by_work &&
			got.deadline_ms == expected.deadline_ms && got.needed_ms == expected.needed_ms &&
			got.retry_after_ms == expected.retry_after_ms)
			continue;
		printf("deadline %d: too late %d, by work %d, %lld of %lld ms, again after %lld\n", i, got.too_late, got.by_work,
			   (long long) got.needed_ms, (long long) got.deadline_ms, (long long) got.retry_after_ms);
		failed++;
	}
	governor_deadline_add(&deadline, 300);
	governor_deadline_add(&deadline, 500);
	if (deadline != 300)
		failed++;
	governor_deadline_add(&deadline, -20);
	return failed + (deadline != 0);
}
