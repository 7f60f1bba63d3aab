/*
 * steer.c
 *		Finds how many slots a gate should have, by what its throughput gains or loses with them.
 *		It knows nothing of PostgreSQL.
 *
 * Neither the CPU nor the queue's delay tells whether more sessions at work get more done: where they wait for
 * locks both are low (Protego, NSDI 2023).  So the limit is moved a little up and down in turn, and the throughput of
 * neighbouring times compared.  The elasticity is the per cent of throughput gained for a per cent of slots.
 * Above a threshold the limit goes up, below it down, since slots that bring nothing only make
 * transactions wait for each other; where the measurements do not tell, it stays, and rests.
 *
 * It travels in wide steps while a load is new, and in small ones once it has turned round, so that probes
 * and steps together stay within a fifth of the limit.  Rests become longer while nothing changes, and end
 * when the throughput or the demand is another one.
 *
 * Where nobody queues it is probed below the demand, as the limit itself is not felt; but not where so few
 * sessions work that the CPUs have room for them.
 */
#include "steer.h"

#include <math.h>
#include <string.h>

#define MS INT64_C(1000)

/* Per cent of throughput for a per cent of slots that are worth it. */
#define WORTH 0.08

/* How sure a move has to be, in standard errors; surer where it is about the best already. */
#define SURE_FAR 1.5
#define SURE_NEAR 2.0
#define SURE_OF_LOAD 3.0

/* The spread of the throughput of two neighbouring windows is taken for this before it is known, as if two pairs had shown it. */
#define SPREAD 0.1
#define SPREAD_PAIRS 2

#define PAIRS_MIN 2
#define PAIRS_MAX 12

/* Probes and steps, as factors; far ones while it travels. */
#define PROBE_FAR 1.18
#define PROBE_NEAR 1.09
#define STEP_FAR 1.35
#define STEP_NEAR 1.09
/* Where the throughput changes at least by so many per cent for a per cent of slots, the best is far away. */
#define STRONG 0.4
#define STEP_STRONG 1.8
/* After so many small steps into one direction it is a journey. */
#define STEPS_NEAR_MAX 4
/* Between two small steps, so that they and the probes stay within a fifth of the limit for a minute. */
#define STEP_EVERY_US (30000 * MS)

/* Without a queue at all it has to carry so much more, since the limit is no bound then. */
#define OPEN_WORTH 1.05
/* One that carries so much less is not tried a second time. */
#define OPEN_BAD 0.8
#define OPEN_PAIRS 2
/* The demand is an average, and has to have room below the bound. */
#define OPEN_ROOM 1.1

/* A window: so long and so many transactions at least, after what it has changed has settled. */
#define WINDOW_US (150 * MS)
#define WINDOW_MAX_US (3000 * MS)
#define WINDOW_SERVICES 3
#define WINDOW_COUNT_MIN 20
#define SETTLE_US (50 * MS)

#define FIRST_REST_US (300 * MS)
#define REST_US (2000 * MS)
#define REST_MAX_US (16000 * MS)
#define REST_WINDOW_US (500 * MS)
/* Another load, if throughput or demand differ by this factor for some looks. */
#define CHANGED 1.3
#define CHANGES_MIN 3
#define PAIR_CHANGED 1.5

/* Looks that are further apart, as after a freeze, measure nothing. */
#define GAP_US (600 * MS)

/* Without a queue it is not probed below so many times the least limit. */
#define ROOM 4

static void rest(GovernorSteer *steer, int64_t now, bool known);
static void probe(GovernorSteer *steer, const GovernorSteerSight *sight);
static void begin_window(GovernorSteer *steer, int64_t now);
static bool has_settled(const GovernorSteer *steer, int64_t now, int64_t service_us);
static bool window_ends(const GovernorSteer *steer, int64_t now, int64_t service_us);
static void rests(GovernorSteer *steer, const GovernorSteerSight *sight);
static void probes(GovernorSteer *steer, const GovernorSteerSight *sight);
static void decide(GovernorSteer *steer, const GovernorSteerSight *sight);
static void move(GovernorSteer *steer, const GovernorSteerSight *sight, int direction);
static void decide_open(GovernorSteer *steer, const GovernorSteerSight *sight);
static bool load_has_changed(const GovernorSteer *steer, const double *rate);
static bool is_high(int window);
static double probe_limit(const GovernorSteer *steer, const GovernorSteerSight *sight, bool high);
static double clamp(double value, double least, double most);

/* With what was found before, by a monitor that is gone; 0 = nothing. */
void
governor_steer_begin(GovernorSteer *steer, uint32_t found)
{
	memset(steer, 0, sizeof(*steer));
	steer->center = found;
	steer->rest_us = REST_US;
	/* What another monitor has found is where it goes on, with small steps. */
	steer->travels = steer->opens = found == 0;
}

/* Whether the next look needs the number of sessions that were let in. */
bool
governor_steer_wants_count(const GovernorSteer *steer, int64_t now, int64_t service_us)
{
	return steer->counted_at == 0 ? has_settled(steer, now, service_us) : window_ends(steer, now, service_us);
}

/* The limit that is to hold until the next look. */
uint32_t
governor_steer(GovernorSteer *steer, const GovernorSteerSight *sight)
{
	double		least = sight->least;
	double		most = sight->most;

	/* The demand is known after some looks. */
	if (steer->center == 0)
	{
		steer->center = sight->start;
		steer->rest_until = sight->now + FIRST_REST_US;
	}
	steer->center = clamp(steer->center, least, most);
	/* What was measured before a freeze is about another time. */
	if (sight->now - steer->seen_at > GAP_US)
		begin_window(steer, sight->now);
	steer->seen_at = sight->now;
	if (steer->phase == GOVERNOR_STEER_RESTS)
		rests(steer, sight);
	else
		probes(steer, sight);
	if (steer->phase == GOVERNOR_STEER_RESTS)
		return (uint32_t) (steer->center + 0.5);
	return (uint32_t) probe_limit(steer, sight, is_high(steer->window));
}

/* The limit without the probes around it. */
uint32_t
governor_steer_found(const GovernorSteer *steer)
{
	return (uint32_t) (steer->center + 0.5);
}

static void
rest(GovernorSteer *steer, int64_t now, bool known)
{
	steer->phase = GOVERNOR_STEER_RESTS;
	steer->tries_open = false;
	steer->rest_until = now + steer->rest_us;
	steer->rest_us = (int64_t) clamp(2.0 * steer->rest_us, REST_US, REST_MAX_US);
	steer->rest_known = false;
	steer->rest_changes = 0;
	if (steer->probe_demand > 0)
		steer->rest_demand = steer->probe_demand;
	if (known)
		steer->travels = false;
	begin_window(steer, now);
}

static void
probe(GovernorSteer *steer, const GovernorSteerSight *sight)
{
	/* Below the demand, where the limit is not felt. */
	steer->base = fmin(steer->center, sight->demand);
	if (steer->opens && sight->demand > steer->center * PROBE_FAR && sight->demand * OPEN_ROOM < sight->most)
	{
		steer->tries_open = true;
		steer->open_gain = 0;
		steer->opens = false;
	}
	steer->base = clamp(steer->base, sight->least, sight->most);
	if (sight->least == sight->most)
	{
		rest(steer, sight->now, true);
		return;
	}
	steer->phase = GOVERNOR_STEER_PROBES;
	steer->probe_demand = sight->demand;
	steer->window = 0;
	steer->pairs = 0;
	steer->mean = steer->squares = 0;
	begin_window(steer, sight->now);
}

static void
begin_window(GovernorSteer *steer, int64_t now)
{
	steer->window_at = now;
	steer->counted_at = 0;
}

static bool
has_settled(const GovernorSteer *steer, int64_t now, int64_t service_us)
{
	return now - steer->window_at >= (int64_t) clamp(2.0 * service_us, SETTLE_US, WINDOW_MAX_US);
}

static bool
window_ends(const GovernorSteer *steer, int64_t now, int64_t service_us)
{
	int64_t		length = (int64_t) clamp((double) WINDOW_SERVICES * service_us, WINDOW_US, WINDOW_MAX_US);

	if (steer->phase == GOVERNOR_STEER_RESTS)
		length = REST_WINDOW_US;
	return now - steer->counted_at >= length;
}

/* True at the end of a window; *rate is the logarithm of its throughput. */
static bool
measure(GovernorSteer *steer, const GovernorSteerSight *sight, double *rate)
{
	if (!governor_steer_wants_count(steer, sight->now, sight->service_us))
		return false;
	/* Counts that were set to zero meanwhile say nothing. */
	if (steer->counted_at == 0 || sight->admitted < steer->counted)
	{
		steer->counted_at = sight->now;
		steer->counted = sight->admitted;
		return false;
	}
	if (sight->admitted - steer->counted < WINDOW_COUNT_MIN && sight->now - steer->counted_at < WINDOW_MAX_US)
		return false;
	*rate = log((sight->admitted - steer->counted + 0.5) / (double) (sight->now - steer->counted_at));
	return true;
}

/* Until it has rested enough, or the load is another one. */
static void
rests(GovernorSteer *steer, const GovernorSteerSight *sight)
{
	double		rate;
	bool		felt = sight->demand > steer->center || sight->demand > ROOM * sight->least;

	if (measure(steer, sight, &rate))
	{
		begin_window(steer, sight->now);
		if (!steer->rest_known)
		{
			steer->rest_rate = rate;
			steer->rest_known = true;
		}
		if (fabs(rate - steer->rest_rate) > log(CHANGED) ||
				 fabs(log((sight->demand + 1) / (steer->rest_demand + 1))) > log(CHANGED))
			steer->rest_changes++;
		else
			steer->rest_changes = 0;
		if (steer->rest_changes >= CHANGES_MIN)
		{
			steer->travels = steer->opens = true;
			steer->last_move = 0;
			steer->rest_us = REST_US;
			steer->rest_until = sight->now;
		}
	}
	if (felt && sight->now >= steer->rest_until)
		probe(steer, sight);
}

/* Windows with few and many slots in turn: low, high, high, low, so that a trend of the load counts for neither. */
static void
probes(GovernorSteer *steer, const GovernorSteerSight *sight)
{
	double		rate;
	double		before[2] = {steer->rate[0], steer->rate[1]};
	double		delta;
	double		elasticity;

	if (sight->demand < steer->base / 2)
	{
		/* Most of them have gone. */
		rest(steer, sight->now, false);
		return;
	}
	if (!measure(steer, sight, &rate))
		return;
	steer->rate[is_high(steer->window)] = rate;
	steer->window++;
	begin_window(steer, sight->now);
	if (steer->window % 2 != 0)
		return;
	if ((steer->pairs > 0 && load_has_changed(steer, before)) ||
		fabs(log((sight->demand + 1) / (steer->probe_demand + 1))) > log(PAIR_CHANGED))
	{
		steer->travels = steer->opens = true;
		steer->last_move = 0;
		probe(steer, sight);
		return;
	}
	elasticity = (steer->rate[1] - steer->rate[0]) /
		log(probe_limit(steer, sight, true) / probe_limit(steer, sight, false));
	steer->pairs++;
	delta = elasticity - steer->mean;
	steer->mean += delta / steer->pairs;
	steer->squares += delta * (elasticity - steer->mean);
	if (steer->tries_open)
		decide_open(steer, sight);
	else if (steer->pairs >= PAIRS_MIN)
		decide(steer, sight);
}

/* Both windows of a pair carry much more than those of the one before, or much less. */
static bool
load_has_changed(const GovernorSteer *steer, const double *before)
{
	double		low = steer->rate[0] - before[0];
	double		high = steer->rate[1] - before[1];

	return low * high > 0 && fmin(fabs(low), fabs(high)) > log(PAIR_CHANGED);
}

/*
 * A queue costs throughput of its own, so that a gate without one can carry more than with any limit that is felt, and no
 * small step leads there.  It is tried once for each load, where the bound allows it.
 */
static void
decide_open(GovernorSteer *steer, const GovernorSteerSight *sight)
{
	double		gain = steer->rate[1] - steer->rate[0];

	steer->open_gain += gain;
	if (gain > log(OPEN_BAD) && steer->pairs < OPEN_PAIRS)
		return;
	if (gain > log(OPEN_BAD) && steer->open_gain / steer->pairs > log(OPEN_WORTH))
		steer->center = sight->most;
	steer->tries_open = false;
	probe(steer, sight);
}

static void
decide(GovernorSteer *steer, const GovernorSteerSight *sight)
{
	double		spread = SPREAD / log(probe_limit(steer, sight, true) / probe_limit(steer, sight, false));
	double		error = sqrt((steer->squares + SPREAD_PAIRS * spread * spread) /
							 (steer->pairs - 1 + SPREAD_PAIRS) / steer->pairs);
	double		sure = steer->travels ? SURE_FAR : SURE_NEAR;

	/* About the best a look at each pair would find something too often. */
	if (!steer->travels && steer->pairs < PAIRS_MAX)
		return;
	/* There no slot costs much: this is another load. */
	if (steer->mean < -STRONG && steer->mean + SURE_OF_LOAD * error < 0)
		steer->travels = true;
	if (steer->mean - sure * error > WORTH)
		move(steer, sight, 1);
	else if (steer->mean + sure * error < WORTH)
		move(steer, sight, -1);
	else if (steer->pairs >= PAIRS_MAX)
		rest(steer, sight->now, true);
}

/* A way back says that the best is about here. */
static void
move(GovernorSteer *steer, const GovernorSteerSight *sight, int direction)
{
	double		step = !steer->travels ? STEP_NEAR : fabs(steer->mean) > STRONG ? STEP_STRONG :
		direction > 0 || steer->mean < -WORTH ? STEP_FAR : PROBE_FAR;
	double		from = steer->base;
	bool		turns = steer->last_move == -direction;
	double		to = direction > 0 ? fmax(from * step, from + 1) : fmin(from / step, from - 1);

	if (!steer->travels && sight->now - steer->moved_at < STEP_EVERY_US)
	{
		rest(steer, sight->now, true);
		return;
	}
	steer->moved_at = sight->now;
	to = clamp(to, sight->least, sight->most);
	steer->steps_near = !turns && !steer->travels ? steer->steps_near + 1 : 0;
	if (steer->steps_near >= STEPS_NEAR_MAX)
		steer->travels = true;
	steer->last_move = direction;
	/* More than there is demand for cannot be tried: it stays as high as it was. */
	if (direction > 0 && to < steer->center)
		to = steer->center;
	if (turns || to == steer->center)
	{
		if (turns)
			steer->center = (steer->center + to) / 2;
		rest(steer, sight->now, true);
		return;
	}
	steer->center = to;
	if (steer->travels)
		steer->rest_us = REST_US;
	probe(steer, sight);
}

static bool
is_high(int window)
{
	return window % 4 == 1 || window % 4 == 2;
}

/* Small limits differ by one at least. */
static double
probe_limit(const GovernorSteer *steer, const GovernorSteerSight *sight, bool high)
{
	double		factor = steer->travels ? PROBE_FAR : PROBE_NEAR;
	double		limit;

	if (steer->tries_open)
		return high ? sight->most : floor(steer->center + 0.5);
	limit = high ? fmax(floor(steer->base * factor + 0.5), floor(steer->base) + 1) :
		fmin(floor(steer->base / factor + 0.5), ceil(steer->base) - 1);
	/* At a bound there is one side only. */
	return high ? clamp(limit, sight->least + 1, sight->most) : clamp(limit, sight->least, sight->most - 1);
}

static double
clamp(double value, double least, double most)
{
	return value < least ? least : value > most ? most : value;
}
