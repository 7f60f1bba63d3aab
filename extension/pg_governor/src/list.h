/*
 * list.h
 *		Settings that are lists: pg_governor.pools and pg_governor.reserved_roles.
 */
#ifndef GOVERNOR_LIST_H
#define GOVERNOR_LIST_H

#include "compat.h"

#include "state.h"

/* The largest limit that a setting takes. */
#define GOVERNOR_LIMIT_MAX 100000

#define GOVERNOR_NOT_NAMED (-1)

typedef struct GovernorPoolLimits
{
	char		name[NAMEDATALEN];
	int			limits[GOVERNOR_CLASSES];	/* GOVERNOR_NOT_NAMED = as in the settings */
} GovernorPoolLimits;

typedef struct GovernorPoolList
{
	int			count;
	GovernorPoolLimits pools[FLEXIBLE_ARRAY_MEMBER];
} GovernorPoolList;

typedef struct GovernorRoleList
{
	int			count;
	char		names[FLEXIBLE_ARRAY_MEMBER][NAMEDATALEN];
} GovernorRoleList;

extern GovernorPoolList *governor_listed_pools;
extern GovernorRoleList *governor_listed_roles;

extern bool governor_pools_check(char **newval, void **extra, GucSource source);
extern void governor_pools_assign(const char *newval, void *extra);
extern bool governor_roles_check(char **newval, void **extra, GucSource source);
extern void governor_roles_assign(const char *newval, void *extra);

#endif							/* GOVERNOR_LIST_H */
