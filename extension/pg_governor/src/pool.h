/*
 * pool.h
 *		The registry of pools and their limits.
 */
#ifndef GOVERNOR_POOL_H
#define GOVERNOR_POOL_H

#include "compat.h"

#define GOVERNOR_DEFAULT_POOL "default"
#define GOVERNOR_NO_POOL (-1)

extern char *governor_pools_setting;
extern bool governor_pools_check(char **newval, void **extra, GucSource source);
extern void governor_pools_assign(const char *newval, void *extra);

extern void governor_pools_start(void);
extern int	governor_pool_find_or_add(const char *name);
extern void governor_pools_publish_limits(void);

#endif							/* GOVERNOR_POOL_H */
