/*
 * pool.h
 *		The registry of pools with their limits and roles.
 */
#ifndef GOVERNOR_POOL_H
#define GOVERNOR_POOL_H

#include "compat.h"

#define GOVERNOR_DEFAULT_POOL "default"
#define GOVERNOR_NO_POOL (-1)

extern void governor_pools_start(void);
extern int	governor_pool_find(const char *name);
extern void governor_pool_enter(int session, int pool, Oid role);
extern bool governor_pools_are_governed(void);
extern bool governor_pools_observe(void);
extern bool governor_pools_hold(void);
extern void governor_pools_publish(void);
extern void governor_pools_count_pauses(void);
extern void governor_pools_free_unused(void);

#endif							/* GOVERNOR_POOL_H */
