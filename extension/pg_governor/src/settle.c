/*
 * settle.c
 *		How many slots each gate has after a look, and who is let in by that.
 *
 * A gate's capacity is its limit, raised up to the hard maximum by
 *	- those who are long, up to long_limit: they do not keep short ones out;
 *	- those who are in the flush of their commit, on average over some looks, up to
 *	  the limit once more;
 *	- a stall: no slot was released for stall_time, and one more was let in; that
 *	  lasts while those who were there then still run;
 * and to overload_factor times the limit, beyond the hard maximum if need be, while
 *	- no more sessions than that want a slot, on average over some looks,
 *	- their transactions are short: a session in a queue has read its BEGIN with cold
 *	  caches, and starts with cold caches once more when its turn comes,
 *	- and they would not wait for each other's locks: a queue pays where they do;
 * and then by all who are discounted, without a bound: they do no work, and whoever
 * holds a slot and does nothing must not keep all others out.  Parallel workers
 * lower it.  Under "strict" it is the limit, and nothing raises it.
 *
 * With find_limit the limit itself is what carries most (find.c), and overload_factor does not apply.
 * With runnable_per_cpu the limit itself moves between one session for each CPU and
 * the hard maximum, by one at each look, as CockroachDB moves its slots: up while all
 * slots are taken and fewer sessions use a CPU than that, and down while more do.
 */
#include "compat.h"

#include <signal.h>

#include "utils/memutils.h"

#include "clock.h"
#include "cpus.h"
#include "find.h"
#include "gate.h"
#include "news.h"
#include "settings.h"
#include "settle.h"
#include "share.h"
#include "shed.h"
#include "word.h"

/* What is remembered of a gate from look to look. */
typedef struct GateWatch
{
	double		flushing_average;
	double		demand_average; /* sessions that have a slot and work, or queue for one */
	double		young_average;	/* of those who work, the share let in a short time ago */
	double		holders_average;	/* sessions that have a slot */
	double		locked_average; /* of those, the ones that wait for a lock */
	uint64		progress;
	int64		progress_at;
	uint32		stall_credit;
	int			moved_by;		/* by which runnable_per_cpu has moved the limit */
	GovernorCodel codel;
	GovernorPace pace;
} GateWatch;

/* A queue pays from this share on of sessions that would wait for a lock without it. */
#define LOCKED_SHARE_MAX 0.3

static GateWatch *watches;

static void settle_gate(int gate, const GovernorGateLook *seen, int64 now);
static uint32 moving_limit(int gate, const GovernorGateLook *seen, uint32 limit, int64 now);
static uint32 capacity_of(int gate, const GovernorGateLook *seen, uint32 limit);
static void settle_roles(GovernorGate *gate, const GovernorGateLook *seen, uint32 capacity);
static void watch_demand(GateWatch *watch, const GovernorGateLook *seen, GovernorOccupancy occupancy);
static uint32 calm_capacity(const GateWatch *watch, uint32 limit);
static void stall_rule(int gate, int64 now);
static void shed_rule(int gate, const GovernorGateLook *seen, int64 now);
static void tell_of_gate(int gate, const GovernorGateLook *seen);
static void settle_total(const GovernorGateLook *looks);
static bool has_stall_rule(int gate);
static int	count_runnable(const GovernorGateLook *looks);
static int	cpus_now(void);

static int	runnable;

void
governor_settle_start(void)
{
	watches = MemoryContextAllocZero(TopMemoryContext, governor->pool_max * GOVERNOR_CLASSES *
									 sizeof(GateWatch));
	governor_find_start();
}

/* Whether a gate has more slots than its limit says, or is about to, or has its limit found. */
bool
governor_settle_is_wider(void)
{
	if (governor_find_wants_looks())
		return true;
	for (int gate = 0; gate < governor_gate_count(); gate++)
		if (watches[gate].stall_credit > 0 ||
			pg_atomic_read_u32(&governor_gate_at(gate)->capacity) >
			pg_atomic_read_u32(&governor_gate_at(gate)->limit))
			return true;
	return false;
}

void
governor_settle(const GovernorGateLook *looks, int64 now)
{
	runnable = count_runnable(looks);
	settle_total(looks);
	for (int gate = 0; gate < governor_gate_count(); gate++)
		settle_gate(gate, &looks[gate], now);
	governor_share_hand_on();
}

void
governor_settle_found_long(int gate)
{
	LWLockAcquire(governor_gate_lock(gate), LW_EXCLUSIVE);
	governor_gate_at(gate)->stats.became_long++;
	LWLockRelease(governor_gate_lock(gate));
}

/* Once: it is gone, or has moved on, by the next look. */
void
governor_settle_end_idle(int pid, int64 idle_us)
{
	ereport(LOG,
			(errmsg("pg_governor: terminating process %d, which has a slot and has been idle in its transaction for %.0f ms while others queue",
					pid, idle_us / 1000.0)));
	if (pid > 0)
		kill(pid, SIGTERM);
}

/* Sets how many slots there are now, and lets in as many as that allows. */
static void
settle_gate(int gate_index, const GovernorGateLook *seen, int64 now)
{
	GovernorGate *gate = governor_gate_at(gate_index);
	GateWatch  *watch = &watches[gate_index];
	uint32		limit = pg_atomic_read_u32(&gate->limit);
	bool		governed = pg_atomic_read_u32(&gate->hard_max) > 0;
	GovernorOccupancy occupancy = governor_gate_occupancy(gate);

	if (limit == 0 || !governed)
	{
		if (pg_atomic_read_u32(&gate->capacity) != 0)
			pg_atomic_write_u32(&gate->capacity, 0);
		memset(watch, 0, sizeof(*watch));
		governor_find_forget(gate_index);
		if (occupancy.queued > 0)
			governor_gate_admit_free(gate_index);
		return;
	}
	watch->stall_credit = Min(watch->stall_credit, seen->stalled);
	watch->flushing_average += (seen->flushing - watch->flushing_average) / 8;
	watch_demand(watch, seen, occupancy);
	if (occupancy.queued == 0)
	{
		/* What is remembered of a queue; what still runs is not forgotten. */
		watch->progress_at = 0;
		memset(&watch->codel, 0, sizeof(watch->codel));
		memset(&watch->pace, 0, sizeof(watch->pace));
		pg_atomic_write_u32(&gate->place_us, 0);
		pg_atomic_write_u32(&gate->service_us, 0);
	}
	pg_atomic_write_u32(&gate->capacity,
						capacity_of(gate_index, seen, moving_limit(gate_index, seen, limit, now)));
	settle_roles(gate, seen, pg_atomic_read_u32(&gate->capacity));
	if (occupancy.queued == 0)
		return;
	tell_of_gate(gate_index, seen);
	if (!governor_share_is_limited())
		governor_gate_admit_free(gate_index);
	if (has_stall_rule(gate_index))
		stall_rule(gate_index, now);
	shed_rule(gate_index, seen, now);
}

/* The limit, or where find_limit or runnable_per_cpu has moved it to. */
static uint32
moving_limit(int gate_index, const GovernorGateLook *seen, uint32 limit, int64 now)
{
	GateWatch  *watch = &watches[gate_index];
	GovernorGate *gate = governor_gate_at(gate_index);
	GovernorOccupancy occupancy = governor_gate_occupancy(gate);
	int			most = pg_atomic_read_u32(&governor->strict) ? limit : pg_atomic_read_u32(&gate->hard_max);
	int			cpus;
	int			least;

	if (governor_find_limit)
	{
		GovernorFindSight sight = {.limit = limit, .cpus = cpus_now(), .wanted = seen->counted + occupancy.queued, .now = now};

		watch->moved_by = 0;
		return governor_find_limit_of(gate_index, sight);
	}
	governor_find_forget(gate_index);
	if (governor_runnable_per_cpu == 0)
	{
		watch->moved_by = 0;
		return limit;
	}
	cpus = cpus_now();
	least = Min((int) limit, cpus);
	if (runnable > governor_runnable_per_cpu * cpus)
		watch->moved_by--;
	else if (occupancy.queued > 0 && occupancy.taken >= pg_atomic_read_u32(&gate->capacity))
		watch->moved_by++;
	watch->moved_by = Max(least - (int) limit, Min(most - (int) limit, watch->moved_by));
	return limit + watch->moved_by;
}

static uint32
capacity_of(int gate_index, const GovernorGateLook *seen, uint32 limit)
{
	GovernorGate *gate = governor_gate_at(gate_index);
	GateWatch  *watch = &watches[gate_index];
	uint32		hard_max = Max(limit, pg_atomic_read_u32(&gate->hard_max));
	uint32		workers = (uint32) (seen->workers * governor_parallel_weight);
	uint32		capacity = limit;
	GovernorEnforced enforced = governor_find_limit ? GOVERNOR_ENFORCED_FOUND :
		watch->moved_by != 0 ? GOVERNOR_ENFORCED_MOVED : GOVERNOR_ENFORCED_LIMIT;

	if (!pg_atomic_read_u32(&governor->strict))
	{
		uint32		long_ones = governor_long_limit < 0 ? seen->long_ones :
			Min(seen->long_ones, (uint32) governor_long_limit);
		uint32		calm = calm_capacity(watch, limit);

		capacity += long_ones + Min((uint32) watch->flushing_average, limit) + watch->stall_credit;
		capacity = Max(Min(capacity, hard_max), calm) + seen->discounted;
		if (capacity > limit)
			enforced = calm > limit ? GOVERNOR_ENFORCED_OVERLOAD : GOVERNOR_ENFORCED_RAISED;
		pg_atomic_write_u32(&gate->ceiling, hard_max + seen->discounted);
	}
	else
		pg_atomic_write_u32(&gate->ceiling, limit);
	capacity = capacity > workers ? capacity - workers : 1;
	if (capacity < limit)
		enforced = GOVERNOR_ENFORCED_LOWERED;
	if (pg_atomic_read_u32(&gate->enforced) != (uint32) enforced)
		pg_atomic_write_u32(&gate->enforced, enforced);
	return capacity;
}

/* A role's share is of the slots there are now without the discounted ones; its own are added. */
static void
settle_roles(GovernorGate *gate, const GovernorGateLook *seen, uint32 capacity)
{
	bool		strict = pg_atomic_read_u32(&governor->strict) != 0;
	uint32		discounted = strict ? 0 : seen->discounted;

	if (governor_role_share == 100)
		return;
	for (int role = 0; role < GOVERNOR_ROLES; role++)
	{
		uint32		of_role = strict ? 0 : seen->role_discounted[role];

		if (pg_atomic_read_u32(&gate->role_discounted[role]) != of_role)
			pg_atomic_write_u32(&gate->role_discounted[role], of_role);
	}
	pg_atomic_write_u32(&gate->role_slots, governor_share_of_role(capacity - Min(capacity, discounted)));
}

static void
watch_demand(GateWatch *watch, const GovernorGateLook *seen, GovernorOccupancy occupancy)
{
	double		demand = (double) seen->counted + occupancy.queued;
	double		young = seen->counted > 0 ? (double) seen->young / seen->counted : 0;

	/*
	 * Slowly upwards: what has just begun may still become long.  Where nobody works, a pause of
	 * seconds between two bursts of short transactions does not count.
	 */
	watch->young_average += (young - watch->young_average) /
		(seen->counted == 0 ? 64 : young > watch->young_average ? 32 : 8);
	if (seen->counted + seen->discounted > 0)
	{
		watch->holders_average += ((double) seen->counted + seen->discounted - watch->holders_average) / 16;
		watch->locked_average += (seen->kinds[GOVERNOR_WAIT_LOCK] - watch->locked_average) / 16;
	}
	/* Without a queue nobody wants more than there is. */
	if (occupancy.queued == 0)
		watch->demand_average = demand;
	else
		watch->demand_average += (demand - watch->demand_average) / 8;
}

/*
 * How many slots there are while short transactions do not overload the gate; 0 if they
 * do.  Where few wait for locks, the share of those who do grows with the number of
 * sessions, so that a look at those who have a slot says how many of all would wait.
 */
static uint32
calm_capacity(const GateWatch *watch, uint32 limit)
{
	double		most = limit * governor_overload_factor;
	double		holders = Max(1, watch->holders_average);
	double		locked_share = watch->locked_average / holders * Max(1, watch->demand_average / holders);

	return !governor_find_limit && governor_runnable_per_cpu == 0 && watch->young_average >= 0.5 &&
		watch->demand_average <= most && locked_share <= LOCKED_SHARE_MAX ? (uint32) most : 0;
}

static void
stall_rule(int gate_index, int64 now)
{
	GovernorGate *gate = governor_gate_at(gate_index);
	GateWatch  *watch = &watches[gate_index];
	uint64		progress = pg_atomic_read_u64(&gate->progress);
	uint64		held_back;

	if (watch->progress_at == 0 || progress != watch->progress)
	{
		watch->progress = progress;
		watch->progress_at = now;
		return;
	}
	if (governor_stall_time_ms == 0 || pg_atomic_read_u32(&governor->strict) ||
		now - watch->progress_at < governor_stall_time_ms * US_PER_MS ||
		!governor_gate_admit_stalled(gate_index))
		return;
	watch->stall_credit++;
	watch->progress_at = now;
	if (governor_news_due(GOVERNOR_NEWS_STALL, &held_back))
		ereport(LOG,
				(errmsg("pg_governor: no slot of class \"%s\" in pool \"%s\" was released for %d ms, so one more session was let in",
						governor_class_names[governor_class_of_gate(gate_index)],
						governor_pool_of_gate(gate_index)->name, governor_stall_time_ms),
				 governor_news_detail(held_back)));
}

/* How slow the queue is, and with policy "codel" whether the first one is refused. */
static void
shed_rule(int gate_index, const GovernorGateLook *seen, int64 now)
{
	GovernorGate *gate = governor_gate_at(gate_index);
	GateWatch  *watch = &watches[gate_index];
	int64		head_since = pg_atomic_read_u64(&gate->head_since);
	uint64		held_back;

	pg_atomic_write_u32(&gate->place_us,
						governor_shed_pace(&watch->pace, now, pg_atomic_read_u64(&gate->progress),
										   pg_atomic_read_u32(&gate->place_us)));
	if (pg_atomic_read_u32(&gate->place_us) > 0)
		pg_atomic_write_u32(&gate->service_us,
							governor_shed_service(seen->counted - seen->long_ones, pg_atomic_read_u32(&gate->place_us),
												  pg_atomic_read_u32(&gate->service_us)));
	if (pg_atomic_read_u32(&governor_pool_of_gate(gate_index)->policy) != GOVERNOR_CODEL ||
		governor_gate_is_observed(gate_index) ||
		!governor_shed_due(&watch->codel, now, now - head_since, governor_codel_target_ms * US_PER_MS,
						   governor_codel_interval_ms * US_PER_MS) ||
		!governor_gate_order_head(gate_index, GOVERNOR_ORDER_SHED))
		return;
	if (governor_news_due(GOVERNOR_NEWS_SHED, &held_back))
		ereport(LOG,
				(errmsg("pg_governor: refused a session of class \"%s\" in pool \"%s\", whose queue has taken longer than %d ms for %d ms",
						governor_class_names[governor_class_of_gate(gate_index)],
						governor_pool_of_gate(gate_index)->name, governor_codel_target_ms,
						governor_codel_interval_ms),
				 governor_news_detail(held_back)));
}

/* Why a queue does not get shorter, for whoever can do something about it. */
static void
tell_of_gate(int gate_index, const GovernorGateLook *seen)
{
	GovernorGate *gate = governor_gate_at(gate_index);
	const char *class = governor_class_names[governor_class_of_gate(gate_index)];
	const char *pool = governor_pool_of_gate(gate_index)->name;
	GovernorOccupancy occupancy = governor_gate_occupancy(gate);
	uint32		hard_max = pg_atomic_read_u32(&gate->hard_max);
	uint64		held_back;

	if (seen->idle >= pg_atomic_read_u32(&gate->limit) &&
		governor_news_due(GOVERNOR_NEWS_IDLE, &held_back))
	{
		char		pids[GOVERNOR_IDLE_NAMED * 12 + 8] = "";

		for (uint32 i = 0; i < Min(seen->idle, GOVERNOR_IDLE_NAMED); i++)
			sprintf(pids + strlen(pids), "%s%d", i == 0 ? "" : ", ", seen->idle_pids[i]);
		ereport(LOG,
				(errmsg("pg_governor: %u sessions with a slot of class \"%s\" in pool \"%s\" are idle in their transactions, and %u sessions queue",
						seen->idle, class, pool, occupancy.queued),
				 errdetail("Idle processes: %s%s.", pids, seen->idle > GOVERNOR_IDLE_NAMED ? " and more" : ""),
				 errhint("Set pg_governor.idle_holder_timeout or idle_in_transaction_session_timeout to end them.")));
	}
	if (occupancy.taken >= hard_max + seen->discounted && !pg_atomic_read_u32(&governor->strict) &&
		governor_news_due(GOVERNOR_NEWS_HARD_MAX, &held_back))
		ereport(LOG,
				(errmsg("pg_governor: class \"%s\" in pool \"%s\" is at its hard maximum of %u slots, and %u sessions queue",
						class, pool, hard_max, occupancy.queued),
				 governor_news_detail(held_back),
				 errhint("Look at what the sessions with a slot work on, in pg_stat_activity.")));
}

/* Classes for work that takes long do not stall when nothing ends for a while. */
static bool
has_stall_rule(int gate)
{
	return governor_class_of_gate(gate) != GOVERNOR_BIG_QUERY;
}

static void
settle_total(const GovernorGateLook *looks)
{
	uint32		limit = pg_atomic_read_u32(&governor->total_limit);
	uint32		hard_max = pg_atomic_read_u32(&governor->total_hard_max);
	uint32		discounted = 0;
	uint32		long_ones = 0;

	if (limit == 0)
		return;
	for (int gate = 0; gate < governor_gate_count(); gate++)
	{
		discounted += looks[gate].discounted;
		long_ones += looks[gate].long_ones;
	}
	if (pg_atomic_read_u32(&governor->strict))
		discounted = long_ones = 0;
	pg_atomic_write_u32(&governor->total_capacity, Min(limit + long_ones, Max(limit, hard_max)) + discounted);
	pg_atomic_write_u32(&governor->total_ceiling, Max(limit, hard_max) + discounted);
}

/* Sessions with a slot that use a CPU or want one. */
static int
count_runnable(const GovernorGateLook *looks)
{
	int			count = 0;

	for (int gate = 0; gate < governor_gate_count(); gate++)
		count += looks[gate].kinds[GOVERNOR_WAIT_NOT];
	return count;
}

/* A quota may be changed at any time, and is read from files. */
static int
cpus_now(void)
{
	static int	cpus = 0;
	static int64 read_at = 0;
	int64		now = governor_now_us();

	if (cpus == 0 || now - read_at > 10 * 1000 * US_PER_MS)
	{
		cpus = governor_cpus();
		read_at = now;
	}
	return cpus;
}
