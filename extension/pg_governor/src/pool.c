/*
 * pool.c
 *		The registry of pools: which names there are, each one's limits and roles.
 *
 * A pool comes into being when the setting pg_governor.pools names it or when
 * the first session uses it, and stays until the server stops.  The monitor
 * publishes limits; sessions only read them.
 */
#include "compat.h"

#include <math.h>

#include "doze.h"
#include "list.h"
#include "pool.h"
#include "settings.h"
#include "state.h"

static int	pool_add(const char *name);
static void publish_limits(GovernorPool *pool);
static int	pool_limit(const char *name, GovernorClass class);
static int	long_limit(const char *name);
static int	largest_limit(const char *name);
static uint32 hard_max(int limit);

/* Called once, while the server starts and no other process is there. */
void
governor_pools_start(void)
{
	pool_add(GOVERNOR_DEFAULT_POOL);
	governor_pools_publish_limits();
}

/*
 * Returns the pool's index, or GOVERNOR_NO_POOL if there is no room for another
 * one: its sessions are then not limited, which is told once in the log.
 */
int
governor_pool_find_or_add(const char *name)
{
	int			found = GOVERNOR_NO_POOL;
	bool		added = false;
	bool		tell = false;

	LWLockAcquire(governor->registry_lock, LW_EXCLUSIVE);
	for (int i = 0; i < governor->pool_count && found == GOVERNOR_NO_POOL; i++)
		if (strcmp(governor->pools[i].name, name) == 0)
			found = i;
	if (found == GOVERNOR_NO_POOL && governor->pool_count < governor->pool_max)
	{
		/* Its limits come from this session's reading: the monitor's counts. */
		found = pool_add(name);
		added = true;
	}
	if (found == GOVERNOR_NO_POOL && !governor->registry_full_told)
		tell = governor->registry_full_told = true;
	LWLockRelease(governor->registry_lock);

	if (added)
		governor_doze_stale();
	if (tell)
		ereport(LOG,
				(errmsg("pg_governor: no room for pool \"%s\", its sessions are not limited", name),
				 errhint("Increase pg_governor.max_pools.")));
	return found;
}

/* The index of a role in its pool; the last one is for all that find no room. */
int
governor_pool_role_find_or_add(int pool, Oid role)
{
	Oid		   *roles = governor->pools[pool].roles;
	int			index = GOVERNOR_ROLE_ANY + 1;

	LWLockAcquire(governor->registry_lock, LW_EXCLUSIVE);
	while (index < GOVERNOR_ROLE_OTHERS && roles[index] != role && OidIsValid(roles[index]))
		index++;
	if (index < GOVERNOR_ROLE_OTHERS)
		roles[index] = role;
	LWLockRelease(governor->registry_lock);
	return index;
}

/* The monitor's part: settings into shared memory, for all pools. */
void
governor_pools_publish_limits(void)
{
	GovernorPoolList *listed = governor_listed_pools;
	bool		governed = governor_enabled && governor->monitor != GOVERNOR_NOBODY;
	uint32		total = governed ? governor_total_limit : 0;

	LWLockAcquire(governor->registry_lock, LW_EXCLUSIVE);
	for (int i = 0; listed != NULL && i < listed->count; i++)
	{
		bool		known = false;

		for (int j = 0; j < governor->pool_count && !known; j++)
			known = strcmp(governor->pools[j].name, listed->pools[i].name) == 0;
		if (!known && governor->pool_count < governor->pool_max)
			pool_add(listed->pools[i].name);
	}
	for (int i = 0; i < governor->pool_count; i++)
		publish_limits(&governor->pools[i]);
	pg_atomic_write_u32(&governor->observing, governor_mode == GOVERNOR_OBSERVE);
	pg_atomic_write_u32(&governor->total_limit, total);
	pg_atomic_write_u32(&governor->total_hard_max, hard_max(total));
	pg_atomic_write_u32(&governor->total_capacity, total);
	LWLockRelease(governor->registry_lock);
}

static int
pool_add(const char *name)
{
	int			index = governor->pool_count;
	GovernorPool *pool = &governor->pools[index];

	strlcpy(pool->name, name, NAMEDATALEN);
	publish_limits(pool);
	/* Others read the count without a lock. */
	pg_write_barrier();
	governor->pool_count = index + 1;
	return index;
}

/*
 * The capacity is opened only here and by the monitor.  Without a monitor nobody
 * would ever be let in for any other reason than a slot released, so the gates
 * stay open until there is one.
 */
static void
publish_limits(GovernorPool *pool)
{
	bool		governed = governor_enabled && governor->monitor != GOVERNOR_NOBODY;
	bool		shared = governor_role_share < 100;

	for (int class = 0; class < GOVERNOR_CLASSES; class++)
	{
		GovernorGate *gate = &pool->gates[class];
		int			limit = governor_enabled ? pool_limit(pool->name, class) : 0;
		int			bounding = class == GOVERNOR_LONG && limit > 0 ?
			Max(limit, largest_limit(pool->name)) : limit;

		pg_atomic_write_u32(&gate->limit, limit);
		pg_atomic_write_u32(&gate->capacity, governed ? limit : 0);
		pg_atomic_write_u32(&gate->hard_max, governed ? hard_max(bounding) : 0);
		/* What was demoted is counted in no role: it would keep the role from short work. */
		pg_atomic_write_u32(&gate->role_slots, shared && class != GOVERNOR_LONG ?
							Max(1, limit * governor_role_share / 100) : 0);
		pg_atomic_write_u32(&gate->role_places, shared && class != GOVERNOR_LONG ?
							Max(1, (int64) governor_max_queue * governor_role_share / 100) : 0);
	}
}

static int
pool_limit(const char *name, GovernorClass class)
{
	GovernorPoolList *listed = governor_listed_pools;

	for (int i = 0; listed != NULL && i < listed->count; i++)
		if (strcmp(listed->pools[i].name, name) == 0 &&
			listed->pools[i].limits[class] != GOVERNOR_NOT_NAMED)
			return listed->pools[i].limits[class];
	return class == GOVERNOR_LONG ? long_limit(name) : governor_limits[class];
}

/* −1, the default: a quarter of the largest limit of the pool's other classes. */
static int
long_limit(const char *name)
{
	int			largest = largest_limit(name);

	if (governor_limits[GOVERNOR_LONG] >= 0)
		return governor_limits[GOVERNOR_LONG];
	return largest == 0 ? 0 : Max(1, largest / 4);
}

static int
largest_limit(const char *name)
{
	int			largest = 0;

	for (int class = 0; class < GOVERNOR_CLASSES; class++)
		if (class != GOVERNOR_LONG && class != GOVERNOR_BIG_QUERY)
			largest = Max(largest, pool_limit(name, class));
	return largest;
}

static uint32
hard_max(int limit)
{
	return (uint32) ceil(limit * governor_hard_max_factor);
}
