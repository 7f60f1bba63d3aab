/*
 * pool.c
 *		The registry of pools: which there are, each one's settings and roles.
 *
 * There are the pool "default" and those that the setting pg_governor.pools lists.
 * The monitor adds and removes them and publishes their settings; sessions only read.
 * A pool that is not listed any more is found by nobody, and its place is free once no
 * session has a slot there or queues.
 */
#include "compat.h"

#include <math.h>

#include "list.h"
#include "pool.h"
#include "settings.h"
#include "share.h"
#include "state.h"

static bool free_unused(void);
static int	find(const char *name);
static GovernorPoolLimits *listed(const char *name);
static bool add(const char *name);
static int	free_place(void);
static bool is_empty(GovernorPool *pool);
static int	role_index(int pool, Oid role);
static bool role_is_used(int pool, int role);
static void publish(GovernorPool *pool);
static uint32 limit_now(GovernorGate *gate, int limit);
static int	pool_limit(const char *name, GovernorClass class);
static uint32 hard_max(int limit);
static int	named_or(int named, int setting);

/* Called once, while the server starts and no other process is there. */
void
governor_pools_start(void)
{
	add(GOVERNOR_DEFAULT_POOL);
	governor_pools_publish();
}

/* The pool's index, or GOVERNOR_NO_POOL. */
int
governor_pool_find(const char *name)
{
	int			found;

	LWLockAcquire(governor->registry_lock, LW_SHARED);
	found = find(name);
	LWLockRelease(governor->registry_lock);
	return found;
}

/* The session belongs to this pool from now on, in this role. */
void
governor_pool_enter(int session, int pool, Oid role)
{
	LWLockAcquire(governor->registry_lock, LW_EXCLUSIVE);
	governor_session_at(session)->pool = pool;
	governor_session_at(session)->role = pool == GOVERNOR_NO_POOL ? GOVERNOR_ROLE_ANY : role_index(pool, role);
	LWLockRelease(governor->registry_lock);
}

/*
 * Whether pg_governor.enabled is on: what the monitor has published, which reaches those who
 * wait too, and this process's own, which is right without a monitor.
 */
bool
governor_pools_are_governed(void)
{
	return governor_enabled && pg_atomic_read_u32(&governor->enabled) != 0;
}

/* Whether some pool only observes, or all do. */
bool
governor_pools_observe(void)
{
	if (pg_atomic_read_u32(&governor->observing) != 0)
		return true;
	for (int i = 0; i < governor->pool_count; i++)
		if (governor_pool_is_used(i) && pg_atomic_read_u32(&governor->pools[i].observing) != 0)
			return true;
	return false;
}

/* Whether anybody waits at all. */
bool
governor_pools_hold(void)
{
	return governor_pools_are_governed() && pg_atomic_read_u32(&governor->observing) == 0;
}

/* How many pools and databases are paused; under the registry's lock. */
void
governor_pools_count_pauses(void)
{
	uint32		pauses = 0;

	for (int i = 0; i < governor->pool_count; i++)
		pauses += pg_atomic_read_u32(&governor->pools[i].paused);
	for (int i = 0; i < GOVERNOR_PAUSED_DATABASES; i++)
		pauses += OidIsValid(governor->paused_databases[i]);
	pg_atomic_write_u32(&governor->pauses, pauses);
}

/* The monitor's part: settings into shared memory, for all pools. */
void
governor_pools_publish(void)
{
	GovernorPoolList *list = governor_listed_pools;
	uint32		total = governor_enabled && governor->monitor != GOVERNOR_NOBODY ? governor_total_limit : 0;
	bool		changed = false;

	LWLockAcquire(governor->registry_lock, LW_EXCLUSIVE);
	for (int i = 1; i < governor->pool_count; i++)
		if (governor_pool_is_used(i) && !governor->pools[i].retired &&
			listed(governor->pools[i].name) == NULL)
			changed = governor->pools[i].retired = true;
	free_unused();
	governor->pools_without_room = 0;
	for (int i = 0; list != NULL && i < list->count; i++)
	{
		if (find(list->pools[i].name) != GOVERNOR_NO_POOL)
			continue;
		if (add(list->pools[i].name))
			changed = true;
		else
			governor->pools_without_room++;
	}
	for (int i = 0; i < governor->pool_count; i++)
		if (governor_pool_is_used(i))
			publish(&governor->pools[i]);
	pg_atomic_write_u32(&governor->enabled, governor_enabled);
	pg_atomic_write_u32(&governor->observing, governor_mode == GOVERNOR_OBSERVE);
	pg_atomic_write_u32(&governor->strict, governor_strict);
	pg_atomic_write_u32(&governor->total_limit, total);
	pg_atomic_write_u32(&governor->total_hard_max, hard_max(total));
	pg_atomic_write_u32(&governor->total_ceiling, hard_max(total));
	pg_atomic_write_u32(&governor->total_capacity, total);
	if (changed)
	{
		governor_pools_count_pauses();
		pg_atomic_write_u32(&governor->unknown_sessions, 0);
		/* Every session looks for its pool again. */
		pg_atomic_fetch_add_u32(&governor->pools_generation, 1);
	}
	LWLockRelease(governor->registry_lock);
}

/* Places of pools that are not listed any more, and that nobody uses. */
void
governor_pools_free_unused(void)
{
	bool		room;

	LWLockAcquire(governor->registry_lock, LW_EXCLUSIVE);
	room = free_unused();
	LWLockRelease(governor->registry_lock);
	if (room && governor->pools_without_room > 0)
		governor_pools_publish();
}

static bool
free_unused(void)
{
	bool		room = false;

	for (int i = 1; i < governor->pool_count; i++)
	{
		GovernorPool *pool = &governor->pools[i];

		if (!pool->retired || !is_empty(pool))
			continue;
		pool->retired = false;
		pool->name[0] = '\0';
		memset(pool->roles, 0, sizeof(pool->roles));
		memset(&pool->ungated, 0, sizeof(pool->ungated));
		pg_atomic_write_u32(&pool->paused, 0);
		/* Who was moved there by hand must not be in the next pool of this place. */
		for (int session = 0; session < governor->session_count; session++)
		{
			uint32		moved_to = i + 1;

			pg_atomic_compare_exchange_u32(&governor_session_at(session)->moved_to, &moved_to, 0);
		}
		for (int class = 0; class < GOVERNOR_CLASSES; class++)
		{
			memset(&pool->gates[class].stats, 0, sizeof(GovernorGateStats));
			memset(&pool->gates[class].sample, 0, sizeof(GovernorSample));
			pg_atomic_write_u32(&pool->gates[class].found_limit, 0);
		}
		room = true;
	}
	if (room)
		governor_pools_count_pauses();
	return room;
}

static int
find(const char *name)
{
	for (int i = 0; i < governor->pool_count; i++)
		if (!governor->pools[i].retired && strcmp(governor->pools[i].name, name) == 0)
			return i;
	return GOVERNOR_NO_POOL;
}

static GovernorPoolLimits *
listed(const char *name)
{
	GovernorPoolList *list = governor_listed_pools;

	for (int i = 0; list != NULL && i < list->count; i++)
		if (strcmp(list->pools[i].name, name) == 0)
			return &list->pools[i];
	return NULL;
}

static bool
add(const char *name)
{
	int			place = free_place();

	if (place == GOVERNOR_NO_POOL)
		return false;
	strlcpy(governor->pools[place].name, name, NAMEDATALEN);
	pg_atomic_write_u32(&governor->pools[place].paused, governor->pause_new_pools);
	publish(&governor->pools[place]);
	/* Others read the count without a lock. */
	pg_write_barrier();
	governor->pool_count = Max(governor->pool_count, place + 1);
	return true;
}

static int
free_place(void)
{
	for (int i = 0; i < governor->pool_max; i++)
		if (i >= governor->pool_count || !governor_pool_is_used(i))
			return i;
	return GOVERNOR_NO_POOL;
}

static bool
is_empty(GovernorPool *pool)
{
	for (int class = 0; class < GOVERNOR_CLASSES; class++)
		if (pg_atomic_read_u64(&pool->gates[class].occupancy) != 0)
			return false;
	return true;
}

/*
 * The index of a role in its pool.  One that no session uses is given to another role;
 * the last one is for all that find no room.
 */
static int
role_index(int pool, Oid role)
{
	Oid		   *roles = governor->pools[pool].roles;
	int			place = GOVERNOR_ROLE_OTHERS;

	for (int i = GOVERNOR_ROLE_ANY + 1; i < GOVERNOR_ROLE_OTHERS; i++)
		if (roles[i] == role)
			return i;
	for (int i = GOVERNOR_ROLE_ANY + 1; i < GOVERNOR_ROLE_OTHERS && place == GOVERNOR_ROLE_OTHERS; i++)
		if (!OidIsValid(roles[i]) || !role_is_used(pool, i))
			place = i;
	if (place != GOVERNOR_ROLE_OTHERS)
		roles[place] = role;
	return place;
}

static bool
role_is_used(int pool, int role)
{
	for (int class = 0; class < GOVERNOR_CLASSES; class++)
	{
		GovernorGate *gate = &governor->pools[pool].gates[class];

		if (pg_atomic_read_u32(&gate->role_taken[role]) > 0 || gate->role_queued[role] > 0)
			return true;
	}
	for (int i = 0; i < governor->session_count; i++)
		if (governor_session_at(i)->pid != 0 && governor_session_at(i)->pool == pool &&
			governor_session_at(i)->role == role)
			return true;
	return false;
}

/*
 * Without a monitor nobody would ever be let in for any other reason than a slot
 * released, so until the first one runs the gates are open.
 */
static void
publish(GovernorPool *pool)
{
	GovernorPoolLimits *own = listed(pool->name);
	bool		governed = governor_enabled && governor->monitor != GOVERNOR_NOBODY;

	pg_atomic_write_u32(&pool->queue_timeout_ms,
						named_or(own ? own->queue_timeout_ms : GOVERNOR_NOT_NAMED, governor_queue_timeout_ms));
	pg_atomic_write_u32(&pool->on_timeout,
						named_or(own ? own->on_timeout : GOVERNOR_NOT_NAMED, governor_on_timeout));
	pg_atomic_write_u32(&pool->policy, named_or(own ? own->policy : GOVERNOR_NOT_NAMED, governor_policy));
	pg_atomic_write_u32(&pool->observing,
						named_or(own ? own->mode : GOVERNOR_NOT_NAMED, GOVERNOR_ENFORCE) == GOVERNOR_OBSERVE);
	pg_atomic_write_u32(&pool->weight, named_or(own ? own->weight : GOVERNOR_NOT_NAMED, 1));
	for (int class = 0; class < GOVERNOR_CLASSES; class++)
	{
		GovernorGate *gate = &pool->gates[class];
		int			limit = governor_enabled ? pool_limit(pool->name, class) : 0;

		pg_atomic_write_u32(&gate->limit, limit);
		pg_atomic_write_u32(&gate->capacity, governed ? limit_now(gate, limit) : 0);
		pg_atomic_write_u32(&gate->hard_max, governed ? hard_max(limit) : 0);
		pg_atomic_write_u32(&gate->enforced, GOVERNOR_ENFORCED_LIMIT);
		pg_atomic_write_u32(&gate->ceiling, governed ? hard_max(limit) : 0);
		pg_atomic_write_u32(&gate->role_slots, governor_share_of_role(limit));
		pg_atomic_write_u32(&gate->role_places, governor_share_of_role(governor_max_queue));
	}
}

/* Until the next look it is not more than what was found. */
static uint32
limit_now(GovernorGate *gate, int limit)
{
	uint32		found = governor_find_limit ? pg_atomic_read_u32(&gate->found_limit) : 0;

	return found > 0 && found < (uint32) limit ? found : (uint32) limit;
}

static int
pool_limit(const char *name, GovernorClass class)
{
	GovernorPoolLimits *own = listed(name);

	return named_or(own ? own->limits[class] : GOVERNOR_NOT_NAMED, governor_limits[class]);
}

/* Under "strict" there is nothing beyond the limit. */
static uint32
hard_max(int limit)
{
	return governor_strict ? limit : (uint32) ceil(limit * governor_hard_max_factor);
}

static int
named_or(int named, int setting)
{
	return named == GOVERNOR_NOT_NAMED ? setting : named;
}
