/*
 * settings.c
 *		Defines every setting of pg_governor.
 *
 * Limits and policies are for the whole server (SIGHUP): the monitor publishes
 * the limits in shared memory, so that all sessions agree on them.  What says
 * how one session is treated (its pool, its gates, its timeout) can be set for a
 * role or a database by a superuser.
 */
#include "compat.h"

#include <float.h>
#include <limits.h>

#include "list.h"
#include "pool.h"
#include "settings.h"
#include "word.h"

bool		governor_enabled = true;
int			governor_mode = GOVERNOR_ENFORCE;
int			governor_limits[GOVERNOR_CLASSES] = {[GOVERNOR_LONG] = -1};
int			governor_total_limit = 0;
int			governor_role_share = 100;
double		governor_hard_max_factor = 3;
int			governor_long_time_ms = 500;
int			governor_max_pools = 16;
char	   *governor_pool_name = NULL;
bool		governor_gate_begin = true;
bool		governor_gate_autocommit = false;
double		governor_big_query_cost = 0;
int			governor_policy = GOVERNOR_THROUGHPUT;
int			governor_warm_time_ms = 50;
int			governor_pass_over_max_ms = 4000;
int			governor_queue_timeout_ms = 10000;
int			governor_user_queue_timeout_ms = 0;
int			governor_log_queue_waits_ms = -1;
int			governor_on_timeout = GOVERNOR_TIMEOUT_RUN;
int			governor_max_queue = 0;
int			governor_reserved_slots = 3;
int			governor_stall_time_ms = 500;
int			governor_discount_time_ms = 100;

int			governor_identity_generation = 0;

static char *pools_setting = NULL;
static char *reserved_roles_setting = NULL;

static const struct config_enum_entry modes[] = {
	{"enforce", GOVERNOR_ENFORCE, false},
	{"observe", GOVERNOR_OBSERVE, false},
	{NULL, 0, false}
};

static const struct config_enum_entry policies[] = {
	{"fifo", GOVERNOR_FIFO, false},
	{"throughput", GOVERNOR_THROUGHPUT, false},
	{NULL, 0, false}
};

static const struct config_enum_entry on_timeouts[] = {
	{"run", GOVERNOR_TIMEOUT_RUN, false},
	{"error", GOVERNOR_TIMEOUT_ERROR, false},
	{"wait", GOVERNOR_TIMEOUT_WAIT, false},
	{NULL, 0, false}
};

static void define_limit(const char *name, const char *meaning, const char *more, int *variable, int least);
static void define_time(const char *name, const char *meaning, const char *more, int *variable,
						int initial_ms, int least_ms, GucContext context);
static void define_limits(void);
static void define_bounds(void);
static void define_pools(void);
static void define_gates(void);
static void define_scheduling(void);
static void define_waiting(void);
static void identity_changed(const char *newval, void *extra);
static bool pool_name_check(char **newval, void **extra, GucSource source);

void
governor_settings_define(void)
{
	define_limits();
	define_pools();
	define_gates();
	define_scheduling();
	define_waiting();
	governor_reserve_setting_prefix("pg_governor");
}

/* Slots, of the whole server.  The least value is the default, and means no limit or "by rule". */
static void
define_limit(const char *name, const char *meaning, const char *more, int *variable, int least)
{
	DefineCustomIntVariable(name, meaning, more, variable, least, least, GOVERNOR_LIMIT_MAX,
							PGC_SIGHUP, 0, NULL, NULL, NULL);
}

/* Milliseconds; in microseconds they fit into the sums of clock.h. */
static void
define_time(const char *name, const char *meaning, const char *more, int *variable,
			int initial_ms, int least_ms, GucContext context)
{
	DefineCustomIntVariable(name, meaning, more, variable, initial_ms, least_ms, INT_MAX / 1000,
							context, GUC_UNIT_MS, NULL, NULL, NULL);
}

static void
define_limits(void)
{
	DefineCustomBoolVariable("pg_governor.enabled",
							 "Turns admission control on or off for the whole server.",
							 "Off lets everybody in who waits, at once.",
							 &governor_enabled, true, PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomEnumVariable("pg_governor.mode",
							 "Whether sessions wait: \"enforce\" or \"observe\".",
							 "With \"observe\" nobody waits; the views count who would have to.",
							 &governor_mode, GOVERNOR_ENFORCE, modes,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
	define_limit("pg_governor.transaction_limit",
				 "Transaction blocks of a pool that may run at the same time.",
				 "0 means no limit.",
				 &governor_limits[GOVERNOR_TRANSACTION], 0);
	define_limit("pg_governor.query_limit",
				 "Queries outside transaction blocks of a pool that may run at the same time.",
				 "0 means no limit. Applies where pg_governor.gate_autocommit is on.",
				 &governor_limits[GOVERNOR_QUERY], 0);
	define_limit("pg_governor.big_query_limit",
				 "Big queries outside transaction blocks of a pool that may run at the same time.",
				 "0 means no limit. A query is big by the hint /*+ big_query */ or by "
				 "pg_governor.big_query_cost.",
				 &governor_limits[GOVERNOR_BIG_QUERY], 0);
	define_limit("pg_governor.autocommit_limit",
				 "Data changes outside transaction blocks of a pool that may run at the same time.",
				 "0 means no limit. Applies where pg_governor.gate_autocommit is on.",
				 &governor_limits[GOVERNOR_AUTOCOMMIT], 0);
	define_bounds();
}

/* What bounds or loosens the limits of the classes. */
static void
define_bounds(void)
{
	define_limit("pg_governor.long_limit",
				 "Long transactions of a pool that are let in at the same time.",
				 "0 means no limit, -1 a quarter of the pool's largest other limit.",
				 &governor_limits[GOVERNOR_LONG], -1);
	define_time("pg_governor.long_time",
				"Time after which a transaction that still works is counted in class \"long\".",
				"0 turns the rule off.",
				&governor_long_time_ms, 500, 0, PGC_SIGHUP);
	DefineCustomRealVariable("pg_governor.hard_max_factor",
							 "Multiple of each limit that is never exceeded by discounts, stalls and timeouts.",
							 "Only a waiter that blocks others with its locks is let in beyond it.",
							 &governor_hard_max_factor, 3, 1, 100,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
	define_limit("pg_governor.total_limit",
				 "Slots of all pools and classes together, without class \"long\".",
				 "0 means no limit.",
				 &governor_total_limit, 0);
	DefineCustomIntVariable("pg_governor.role_share",
							"Percentage of a class's slots and queue that one role may have.",
							"100 means that roles are not told apart.",
							&governor_role_share, 100, 1, 100,
							PGC_SIGHUP, 0, NULL, NULL, NULL);
}

static void
define_pools(void)
{
	DefineCustomIntVariable("pg_governor.max_pools",
							"Number of pools that there is room for in shared memory.",
							NULL,
							&governor_max_pools, 16, 1, GOVERNOR_MAX_POOLS,
							PGC_POSTMASTER, 0, NULL, NULL, NULL);
	DefineCustomStringVariable("pg_governor.pools",
							   "Limits of single pools, such as "
							   "\"reports(query=2, transaction=4), batch(transaction=1)\".",
							   "What is not named here has the limits of the settings.",
							   &pools_setting, "", PGC_SIGHUP, GUC_LIST_INPUT,
							   governor_pools_check, governor_pools_assign, NULL);
	DefineCustomStringVariable("pg_governor.pool",
							   "Pool whose slots this session takes.",
							   "Meant for ALTER ROLE … SET and ALTER DATABASE … SET; SET ROLE does not change it.",
							   &governor_pool_name, GOVERNOR_DEFAULT_POOL, PGC_SUSET, 0,
							   pool_name_check, identity_changed, NULL);
	DefineCustomIntVariable("pg_governor.reserved_slots",
							"Slots beyond every limit for superusers and reserved roles.",
							"They are used when the session would have to queue.",
							&governor_reserved_slots, 3, 0, GOVERNOR_LIMIT_MAX,
							PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomStringVariable("pg_governor.reserved_roles",
							   "Roles that may use reserved slots, besides superusers.",
							   "Names of login roles, separated by commas.",
							   &reserved_roles_setting, "", PGC_SIGHUP, GUC_LIST_INPUT,
							   governor_roles_check, governor_roles_assign, NULL);
}

static void
define_gates(void)
{
	DefineCustomBoolVariable("pg_governor.gate_begin",
							 "Takes a slot at BEGIN for a transaction block.",
							 "A session that waits there has neither a snapshot nor locks.",
							 &governor_gate_begin, true, PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("pg_governor.gate_autocommit",
							 "Takes a slot for each statement outside a transaction block.",
							 "A session that waits there has a snapshot and the locks of its statement.",
							 &governor_gate_autocommit, false, PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomRealVariable("pg_governor.big_query_cost",
							 "Planner cost from which on a query counts as big.",
							 "0 means that only the hint makes a query big.",
							 &governor_big_query_cost, 0, 0, DBL_MAX,
							 PGC_SUSET, 0, NULL, NULL, NULL);
}

static void
define_scheduling(void)
{
	DefineCustomEnumVariable("pg_governor.policy",
							 "Who gets the next slot: \"fifo\" or \"throughput\".",
							 "\"throughput\" lets a session whose caches are warm go on for a bounded time.",
							 &governor_policy, GOVERNOR_THROUGHPUT, policies,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("pg_governor.warm_time",
							"Time for which a session may go on with the same slot, with policy \"throughput\".",
							NULL,
							&governor_warm_time_ms, 50, 0, 10000,
							PGC_SIGHUP, GUC_UNIT_MS, NULL, NULL, NULL);
	define_time("pg_governor.pass_over_max",
				"Time from which on a waiter is no longer passed over by a warm session.",
				NULL,
				&governor_pass_over_max_ms, 4000, 0, PGC_SIGHUP);
	define_time("pg_governor.stall_time",
				"Time without a slot given back after which one more waiter is let in.",
				"0 turns the rule off.",
				&governor_stall_time_ms, 500, 0, PGC_SIGHUP);
	define_time("pg_governor.discount_time",
				"Time after which a session that works without the CPU no longer counts against the limit.",
				"0 turns the rule off.",
				&governor_discount_time_ms, 100, 0, PGC_SIGHUP);
}

static void
define_waiting(void)
{
	define_time("pg_governor.queue_timeout",
				"Time to queue after which pg_governor.on_timeout decides.",
				"0 means no timeout.",
				&governor_queue_timeout_ms, 10000, 0, PGC_SUSET);
	define_time("pg_governor.user_queue_timeout",
				"Time to queue after which this session's transaction fails with an error.",
				"For every user; it can only be shorter than what pg_governor.queue_timeout allows. 0 means none.",
				&governor_user_queue_timeout_ms, 0, 0, PGC_USERSET);
	define_time("pg_governor.log_queue_waits",
				"Time to queue from which on a wait is logged.",
				"-1 logs none.",
				&governor_log_queue_waits_ms, -1, -1, PGC_SUSET);
	DefineCustomEnumVariable("pg_governor.on_timeout",
							 "What a session does after pg_governor.queue_timeout: \"run\", \"error\" or \"wait\".",
							 NULL,
							 &governor_on_timeout, GOVERNOR_TIMEOUT_RUN, on_timeouts,
							 PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("pg_governor.max_queue",
							"Length of a queue from which on further sessions are refused with an error.",
							"0 means no bound.",
							&governor_max_queue, 0, 0, INT_MAX / 2,
							PGC_SIGHUP, 0, NULL, NULL, NULL);
}

static void
identity_changed(const char *newval pg_attribute_unused(), void *extra pg_attribute_unused())
{
	governor_identity_generation++;
}

static bool
pool_name_check(char **newval, void **extra pg_attribute_unused(),
				GucSource source pg_attribute_unused())
{
	Size		length = strlen(*newval);

	if (length > 0 && length < NAMEDATALEN)
		return true;
	GUC_check_errdetail("A pool's name has 1 to %d bytes.", NAMEDATALEN - 1);
	return false;
}
