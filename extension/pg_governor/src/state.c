/*
 * state.c
 *		Lays out the shared state and fills it.  Like gate.c, it needs no server.
 */
#include "compat.h"

#include "storage/shmem.h"

#include "state.h"

GovernorShared *governor = NULL;

const char *const governor_class_names[GOVERNOR_CLASSES] = {
	"query", "big_query", "transaction", "autocommit"
};

static void pool_init(GovernorPool *pool);
static void gate_init(GovernorGate *gate);
static void session_init(GovernorSession *session);

/* The parts one after another, each on cache lines of its own. */
static Size
padded(Size size)
{
	return TYPEALIGN(GOVERNOR_PAD, size);
}

Size
governor_shared_size(int pools, int sessions)
{
	Size		size = GOVERNOR_PAD + padded(sizeof(GovernorShared));

	size = add_size(size, padded(mul_size(pools, sizeof(GovernorPool))));
	size = add_size(size, padded(mul_size(sessions, sizeof(GovernorSession))));
	return add_size(size, padded(mul_size(sessions, sizeof(pg_atomic_uint64))));
}

/* Everything but the locks, in memory that "governor" points to. */
void
governor_shared_init(int pools, int sessions)
{
	char	   *at = (char *) padded((Size) governor + sizeof(GovernorShared));

	memset(governor, 0, governor_shared_size(pools, sessions));
	governor->pools = (GovernorPool *) at;
	at += padded(pools * sizeof(GovernorPool));
	governor->sessions = (GovernorSession *) at;
	at += padded(sessions * sizeof(GovernorSession));
	governor->words = (pg_atomic_uint64 *) at;

	governor->pool_max = pools;
	governor->session_count = sessions;
	governor->monitor = GOVERNOR_NOBODY;
	pg_atomic_init_u32(&governor->monitor_asleep, 0);
	pg_atomic_init_u64(&governor->monitor_beat, 0);
	pg_atomic_init_u64(&governor->silent_beat, 0);
	pg_atomic_init_u32(&governor->enabled, 1);
	pg_atomic_init_u32(&governor->observing, 0);
	pg_atomic_init_u32(&governor->strict, 0);
	pg_atomic_init_u32(&governor->pools_generation, 1);
	pg_atomic_init_u32(&governor->unknown_sessions, 0);
	pg_atomic_init_u32(&governor->pauses, 0);
	pg_atomic_init_u32(&governor->reserved_taken, 0);
	pg_atomic_init_u64(&governor->stats_reset, 0);
	pg_atomic_init_u64(&governor->repairs, 0);
	pg_atomic_init_u32(&governor->total_taken, 0);
	pg_atomic_init_u32(&governor->total_capacity, 0);
	pg_atomic_init_u32(&governor->total_limit, 0);
	pg_atomic_init_u32(&governor->total_hard_max, 0);
	pg_atomic_init_u32(&governor->total_ceiling, 0);
	for (int kind = 0; kind < GOVERNOR_NEWS_KINDS; kind++)
	{
		pg_atomic_init_u64(&governor->news_at[kind], 0);
		pg_atomic_init_u64(&governor->news_held_back[kind], 0);
	}
	pg_atomic_init_u64(&governor->rules_fingerprint, 0);
	for (int i = 0; i < GOVERNOR_RULES_MAX; i++)
	{
		pg_atomic_init_u64(&governor->rule_counts[i].chosen, 0);
		pg_atomic_init_u64(&governor->rule_counts[i].denied, 0);
	}
	for (int i = 0; i < pools; i++)
		pool_init(&governor->pools[i]);
	for (int i = 0; i < sessions; i++)
	{
		session_init(&governor->sessions[i]);
		pg_atomic_init_u64(&governor->words[i], 0);
	}
}

static void
pool_init(GovernorPool *pool)
{
	pg_atomic_init_u32(&pool->queue_timeout_ms, 0);
	pg_atomic_init_u32(&pool->on_timeout, 0);
	pg_atomic_init_u32(&pool->policy, 0);
	pg_atomic_init_u32(&pool->weight, 1);
	pg_atomic_init_u32(&pool->paused, 0);
	pg_atomic_init_u32(&pool->observing, 0);
	for (int class = 0; class < GOVERNOR_CLASSES; class++)
		gate_init(&pool->gates[class]);
}

static void
gate_init(GovernorGate *gate)
{
	pg_atomic_init_u64(&gate->occupancy, 0);
	pg_atomic_init_u32(&gate->capacity, 0);
	pg_atomic_init_u32(&gate->limit, 0);
	pg_atomic_init_u32(&gate->hard_max, 0);
	pg_atomic_init_u32(&gate->ceiling, 0);
	pg_atomic_init_u32(&gate->place_us, 0);
	pg_atomic_init_u32(&gate->service_us, 0);
	pg_atomic_init_u32(&gate->found_limit, 0);
	pg_atomic_init_u32(&gate->role_slots, 0);
	pg_atomic_init_u32(&gate->role_places, 0);
	pg_atomic_init_u64(&gate->head_since, 0);
	pg_atomic_init_u64(&gate->progress, 0);
	for (int role = 0; role < GOVERNOR_ROLES; role++)
	{
		gate->heads[role] = GOVERNOR_NOBODY;
		gate->tails[role] = GOVERNOR_NOBODY;
		pg_atomic_init_u32(&gate->role_taken[role], 0);
		pg_atomic_init_u32(&gate->role_discounted[role], 0);
	}
}

static void
session_init(GovernorSession *session)
{
	session->pool = GOVERNOR_NOBODY;
	session->next = GOVERNOR_NOBODY;
	session->previous = GOVERNOR_NOBODY;
	for (int class = 0; class < GOVERNOR_CLASSES; class++)
	{
		pg_atomic_init_u64(&session->admits_free[class], 0);
		pg_atomic_init_u64(&session->admits_again[class], 0);
	}
	pg_atomic_init_u32(&session->order, GOVERNOR_ORDER_NONE);
	pg_atomic_init_u32(&session->moved_to, 0);
	pg_atomic_init_u64(&session->paused_since, 0);
	pg_atomic_init_u32(&session->busy, 0);
	pg_atomic_init_u32(&session->cancel, 0);
	pg_atomic_init_u64(&session->waits, 0);
	pg_atomic_init_u64(&session->wait_us_total, 0);
	pg_atomic_init_u64(&session->wait_us_max, 0);
}
