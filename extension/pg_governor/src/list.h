/*
 * list.h
 *		Settings that are lists: of pools and of roles.
 */
#ifndef GOVERNOR_LIST_H
#define GOVERNOR_LIST_H

#include "compat.h"

#include "state.h"

/* The largest limit that a setting takes. */
#define GOVERNOR_LIMIT_MAX 100000
#define GOVERNOR_WEIGHT_MAX 1000

#define GOVERNOR_NOT_NAMED (-1)

typedef struct GovernorPoolLimits
{
	char		name[NAMEDATALEN];
	/* GOVERNOR_NOT_NAMED: as in the settings */
	int			limits[GOVERNOR_CLASSES];
	int			weight;
	int			queue_timeout_ms;
	int			on_timeout;
	int			policy;
	int			mode;
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
extern GovernorRoleList *governor_reserved_roles;
extern GovernorRoleList *governor_exempt_roles;

extern bool governor_pools_check(char **newval, void **extra, GucSource source);
extern void governor_pools_assign(const char *newval, void *extra);
extern bool governor_roles_check(char **newval, void **extra, GucSource source);
extern void governor_reserved_roles_assign(const char *newval, void *extra);
extern void governor_exempt_roles_assign(const char *newval, void *extra);

#endif							/* GOVERNOR_LIST_H */
