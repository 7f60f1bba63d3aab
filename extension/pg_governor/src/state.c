/*
 * state.c
 *		Makes the shared state when the server starts, and again after a crash.
 */
#include "compat.h"

#include "storage/ipc.h"
#include "storage/shmem.h"
#include "utils/timestamp.h"

#include "pool.h"
#include "settings.h"
#include "state.h"

GovernorShared *governor = NULL;

const char *const governor_class_names[GOVERNOR_CLASSES] = {
	"query", "big_query", "transaction", "autocommit"
};

#define TRANCHE "pg_governor"

static void gate_init(GovernorGate *gate);
static void session_init(GovernorSession *session);

Size
governor_shared_size(void)
{
	Size		size = offsetof(GovernorShared, pools);

	size = add_size(size, mul_size(governor_max_pools, sizeof(GovernorPool)));
	size = CACHELINEALIGN(size);
	return add_size(size, mul_size(governor_max_backends(), sizeof(GovernorSessionPadded)));
}

/* One lock for the registry of pools, and one for each gate. */
void
governor_shared_request(void)
{
	RequestAddinShmemSpace(governor_shared_size());
	RequestNamedLWLockTranche(TRANCHE, 1 + governor_max_pools * GOVERNOR_CLASSES);
}

void
governor_shared_startup(void)
{
	bool		found;

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	governor = ShmemInitStruct("pg_governor", governor_shared_size(), &found);
	if (!found)
	{
		LWLockPadded *locks = GetNamedLWLockTranche(TRANCHE);
		Size		pools_end;

		memset(governor, 0, governor_shared_size());
		governor->registry_lock = &locks[0].lock;
		governor->gate_locks = &locks[1];
		governor->pool_max = governor_max_pools;
		governor->session_count = governor_max_backends();
		governor->monitor = GOVERNOR_NOBODY;
		pg_atomic_init_u32(&governor->monitor_asleep, 0);
		pg_atomic_init_u64(&governor->monitor_beat, 0);
		pg_atomic_init_u32(&governor->limits_stale, 0);
		pg_atomic_init_u32(&governor->reserved_taken, 0);
		pg_atomic_init_u64(&governor->stats_reset, GetCurrentTimestamp());

		pools_end = offsetof(GovernorShared, pools) + governor_max_pools * sizeof(GovernorPool);
		governor->sessions = (GovernorSessionPadded *)
			((char *) governor + CACHELINEALIGN(pools_end));
		for (int i = 0; i < governor->pool_max; i++)
			for (int class = 0; class < GOVERNOR_CLASSES; class++)
				gate_init(&governor->pools[i].gates[class]);
		for (int i = 0; i < governor->session_count; i++)
			session_init(governor_session_at(i));
		governor_pools_start();
	}
	LWLockRelease(AddinShmemInitLock);
}

static void
gate_init(GovernorGate *gate)
{
	pg_atomic_init_u64(&gate->occupancy, 0);
	pg_atomic_init_u32(&gate->capacity, 0);
	pg_atomic_init_u32(&gate->limit, 0);
	pg_atomic_init_u64(&gate->head_since, 0);
	pg_atomic_init_u64(&gate->progress, 0);
	gate->head = GOVERNOR_NOBODY;
	gate->tail = GOVERNOR_NOBODY;
}

static void
session_init(GovernorSession *session)
{
	pg_atomic_init_u32(&session->state, GOVERNOR_IDLE);
	session->gate = GOVERNOR_NOBODY;
	session->next = GOVERNOR_NOBODY;
	session->previous = GOVERNOR_NOBODY;
	for (int class = 0; class < GOVERNOR_CLASSES; class++)
	{
		pg_atomic_init_u64(&session->admits_free[class], 0);
		pg_atomic_init_u64(&session->admits_again[class], 0);
	}
	pg_atomic_init_u64(&session->waits, 0);
	pg_atomic_init_u64(&session->wait_us_total, 0);
	pg_atomic_init_u64(&session->wait_us_max, 0);
}
