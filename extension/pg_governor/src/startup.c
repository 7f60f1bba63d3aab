/*
 * startup.c
 *		Makes the shared state when the server starts, and again after a crash.
 */
#include "compat.h"

#include "storage/ipc.h"
#include "storage/shmem.h"
#include "utils/timestamp.h"

#include "pool.h"
#include "settings.h"
#include "state.h"

#define TRANCHE "pg_governor"

/* One lock for the registry of pools, and one for each gate. */
void
governor_shared_request(void)
{
	RequestAddinShmemSpace(governor_shared_size(governor_max_pools, governor_max_backends()));
	RequestNamedLWLockTranche(TRANCHE, 1 + governor_max_pools * GOVERNOR_CLASSES);
	RequestNamedLWLockTranche(GOVERNOR_QUEUE_EVENT, 1);
	RequestNamedLWLockTranche(GOVERNOR_PAUSE_EVENT, 1);
}

void
governor_shared_startup(void)
{
	int			sessions = governor_max_backends();
	bool		found;

	LWLockAcquire(AddinShmemInitLock, LW_EXCLUSIVE);
	governor = ShmemInitStruct("pg_governor",
							   governor_shared_size(governor_max_pools, sessions), &found);
	if (!found)
	{
		LWLockPadded *locks = GetNamedLWLockTranche(TRANCHE);

		governor_shared_init(governor_max_pools, sessions);
		governor->registry_lock = &locks[0].lock;
		governor->gate_locks = &locks[1];
		pg_atomic_write_u64(&governor->stats_reset, GetCurrentTimestamp());
		governor_pools_start();
	}
	LWLockRelease(AddinShmemInitLock);
}
