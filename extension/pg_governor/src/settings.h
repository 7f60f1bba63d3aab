/*
 * settings.h
 *		The settings of pg_governor; README.md has the table for users.
 */
#ifndef GOVERNOR_SETTINGS_H
#define GOVERNOR_SETTINGS_H

#include "state.h"

typedef enum GovernorPolicy
{
	GOVERNOR_FIFO,
	GOVERNOR_THROUGHPUT,
	GOVERNOR_CODEL,
} GovernorPolicy;

typedef enum GovernorOnTimeout
{
	GOVERNOR_TIMEOUT_RUN,
	GOVERNOR_TIMEOUT_ERROR,
	GOVERNOR_TIMEOUT_WAIT,
} GovernorOnTimeout;

typedef enum GovernorMode
{
	GOVERNOR_ENFORCE,
	GOVERNOR_OBSERVE,
} GovernorMode;

typedef enum GovernorUnknownPool
{
	GOVERNOR_UNKNOWN_DEFAULT,
	GOVERNOR_UNKNOWN_ERROR,
} GovernorUnknownPool;

typedef enum GovernorCancelCulprit
{
	GOVERNOR_CULPRIT_OFF,
	GOVERNOR_CULPRIT_OBSERVE,
	GOVERNOR_CULPRIT_ON,
} GovernorCancelCulprit;

/* limits, and what raises them */
extern bool governor_enabled;
extern int	governor_mode;
extern bool governor_strict;
extern int	governor_limits[GOVERNOR_CLASSES];
extern int	governor_total_limit;
extern int	governor_role_share;
extern double governor_overload_factor;
extern double governor_hard_max_factor;
extern bool governor_find_limit;
extern double governor_runnable_per_cpu;
extern double governor_parallel_weight;
extern int	governor_long_time_ms;
extern int	governor_long_elapsed_time_ms;
extern int	governor_long_limit;
extern int	governor_stall_time_ms;
extern int	governor_discount_time_ms;
extern int	governor_idle_holder_timeout_ms;
extern int	governor_cancel_culprit;
extern int	governor_culprit_time_ms;

/* who is governed, in which pool, at which gate */
extern int	governor_max_pools;
extern int	governor_unknown_pool;
extern char *governor_pool_name;
extern bool governor_gate_begin;
extern bool governor_gate_autocommit;
extern double governor_big_query_cost;
extern int	governor_reserved_slots;

/* the queue */
extern int	governor_policy;
extern int	governor_unevenness;
extern int	governor_pass_over_max_ms;
extern int	governor_codel_target_ms;
extern int	governor_codel_interval_ms;
extern int	governor_max_queue;
extern bool governor_refuse_early;
extern int	governor_queue_timeout_ms;
extern int	governor_on_timeout;
extern int	governor_user_queue_timeout_ms;
extern int	governor_log_queue_waits_ms;
extern int	governor_notice_queue_waits_ms;

/* Changes whenever a session's pool or the reserved roles may have changed. */
extern int	governor_identity_generation;

extern const struct config_enum_entry governor_modes[];
extern const struct config_enum_entry governor_policies[];
extern const struct config_enum_entry governor_on_timeouts[];

extern void governor_settings_define(void);

#endif							/* GOVERNOR_SETTINGS_H */
