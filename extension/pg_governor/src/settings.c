/*
 * settings.c
 *		Defines every setting of pg_governor.
 *
 * Limits, policies and timeouts are for the whole server or for a pool (SIGHUP): the
 * monitor publishes them in shared memory, so that all sessions agree on them, and
 * those that queue too.  What says how one session is treated (its pool, its gates)
 * can be set for a role or a database by a superuser.
 */
#include "compat.h"

#include <float.h>
#include <limits.h>

#include "list.h"
#include "pool.h"
#include "rule.h"
#include "settings.h"
#include "word.h"

bool		governor_enabled = true;
int			governor_mode = GOVERNOR_ENFORCE;
bool		governor_strict = false;
int			governor_limits[GOVERNOR_CLASSES] = {0};
int			governor_total_limit = 0;
int			governor_role_share = 100;
double		governor_overload_factor = 8;
double		governor_hard_max_factor = 3;
bool		governor_find_limit = false;
double		governor_runnable_per_cpu = 0;
double		governor_parallel_weight = 1;
int			governor_long_time_ms = 500;
int			governor_long_elapsed_time_ms = 0;
int			governor_long_limit = -1;
int			governor_stall_time_ms = 500;
int			governor_discount_time_ms = 100;
int			governor_idle_holder_timeout_ms = 0;
int			governor_cancel_culprit = GOVERNOR_CULPRIT_OFF;
int			governor_culprit_time_ms = 1000;
int			governor_max_pools = 16;
int			governor_unknown_pool = GOVERNOR_UNKNOWN_DEFAULT;
char	   *governor_pool_name = NULL;
bool		governor_gate_begin = true;
bool		governor_gate_autocommit = false;
double		governor_big_query_cost = 0;
int			governor_reserved_slots = 3;
int			governor_policy = GOVERNOR_THROUGHPUT;
int			governor_unevenness = 8;
int			governor_pass_over_max_ms = 4000;
int			governor_codel_target_ms = 200;
int			governor_codel_interval_ms = 2000;
int			governor_max_queue = 0;
bool		governor_refuse_early = false;
int			governor_queue_timeout_ms = 10000;
int			governor_on_timeout = GOVERNOR_TIMEOUT_RUN;
int			governor_user_queue_timeout_ms = 0;
int			governor_log_queue_waits_ms = -1;
int			governor_notice_queue_waits_ms = -1;

int			governor_identity_generation = 0;

static char *pools_setting = NULL;
static char *pool_rules_setting = NULL;
static char *reserved_roles_setting = NULL;
static char *exempt_roles_setting = NULL;

const struct config_enum_entry governor_modes[] = {
	{"enforce", GOVERNOR_ENFORCE, false},
	{"observe", GOVERNOR_OBSERVE, false},
	{NULL, 0, false}
};

static const struct config_enum_entry cancel_culprits[] = {
	{"off", GOVERNOR_CULPRIT_OFF, false},
	{"observe", GOVERNOR_CULPRIT_OBSERVE, false},
	{"on", GOVERNOR_CULPRIT_ON, false},
	{NULL, 0, false}
};

static const struct config_enum_entry unknown_pools[] = {
	{"default", GOVERNOR_UNKNOWN_DEFAULT, false},
	{"error", GOVERNOR_UNKNOWN_ERROR, false},
	{NULL, 0, false}
};

const struct config_enum_entry governor_policies[] = {
	{"fifo", GOVERNOR_FIFO, false},
	{"throughput", GOVERNOR_THROUGHPUT, false},
	{"codel", GOVERNOR_CODEL, false},
	{NULL, 0, false}
};

const struct config_enum_entry governor_on_timeouts[] = {
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
static void define_rules(void);
static void define_culprits(void);
static void define_pools(void);
static void define_roles(void);
static void define_gates(void);
static void define_order(void);
static void define_waiting(void);
static void identity_changed(const char *newval, void *extra);
static void unknown_pool_changed(int newval, void *extra);
static bool pool_name_check(char **newval, void **extra, GucSource source);

void
governor_settings_define(void)
{
	define_limits();
	define_bounds();
	define_rules();
	define_culprits();
	define_pools();
	define_roles();
	define_gates();
	define_order();
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
							 "With \"observe\" nobody waits; the views count who would have to. A pool of pg_governor.pools may have mode=observe for itself.",
							 &governor_mode, GOVERNOR_ENFORCE, governor_modes,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
	define_limit("pg_governor.transaction_limit",
				 "Transaction blocks of a pool that may run at the same time.",
				 "0 means no limit. Short ones queue beyond pg_governor.overload_factor times as many; "
				 "pg_governor_status has what holds now.",
				 &governor_limits[GOVERNOR_TRANSACTION], 0);
	define_limit("pg_governor.query_limit",
				 "Queries outside transaction blocks of a pool that may run at the same time.",
				 "0 means no limit. Applies where pg_governor.gate_autocommit is on. Short ones queue beyond pg_governor.overload_factor times as many; "
				 "pg_governor_status has what holds now.",
				 &governor_limits[GOVERNOR_QUERY], 0);
	define_limit("pg_governor.big_query_limit",
				 "Big queries outside transaction blocks of a pool that may run at the same time.",
				 "0 means no limit. A query is big by the hint /*+ big_query */ or by "
				 "pg_governor.big_query_cost. pg_governor_status has what holds now.",
				 &governor_limits[GOVERNOR_BIG_QUERY], 0);
	define_limit("pg_governor.autocommit_limit",
				 "Data changes outside transaction blocks of a pool that may run at the same time.",
				 "0 means no limit. Applies where pg_governor.gate_autocommit is on. Short ones queue beyond pg_governor.overload_factor times as many; "
				 "pg_governor_status has what holds now.",
				 &governor_limits[GOVERNOR_AUTOCOMMIT], 0);
}

/* What bounds the limits of the classes, or moves them. */
static void
define_bounds(void)
{
	DefineCustomBoolVariable("pg_governor.strict",
							 "Lets nobody in beyond a limit, whatever those do who have a slot.",
							 "What waits for queue_timeout fails then, instead of running.",
							 &governor_strict, false, PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomRealVariable("pg_governor.overload_factor",
							 "Multiple of each limit up to which sessions with short transactions do not queue.",
							 "The limit itself holds once more sessions want a slot, or many would wait for locks. 1 means always.",
							 &governor_overload_factor, 8, 1, 100,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomRealVariable("pg_governor.hard_max_factor",
							 "Multiple of each limit up to which long transactions, flushes and stalls let others in.",
							 "Sessions that do not work do not count.",
							 &governor_hard_max_factor, 3, 1, 100,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
	define_limit("pg_governor.total_limit",
				 "Slots of all pools and classes together.",
				 "0 means no limit.",
				 &governor_total_limit, 0);
	DefineCustomIntVariable("pg_governor.role_share",
							"Percentage of a class's slots and queue that one role may have.",
							"100 means that roles are not told apart.",
							&governor_role_share, 100, 1, 100,
							PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("pg_governor.find_limit",
							 "Finds the limit of each class and pool that carries most transactions, between the CPUs and its setting.",
							 "pg_governor.overload_factor and pg_governor.runnable_per_cpu do not apply then.",
							 &governor_find_limit, false, PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomRealVariable("pg_governor.runnable_per_cpu",
							 "Sessions for each CPU that are to use it or wait for it, to which the limits adapt.",
							 "0 leaves the limits where they are.",
							 &governor_runnable_per_cpu, 0, 0, 1000,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomRealVariable("pg_governor.parallel_weight",
							 "Slots that a parallel worker counts for while it works.",
							 "0 counts only the session itself.",
							 &governor_parallel_weight, 1, 0, 10,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
}

/* When a session with a slot keeps nobody out. */
static void
define_rules(void)
{
	define_time("pg_governor.long_time",
				"Work after which a transaction is long, and lets another one in beside it.",
				"Waits for the client or for locks are no work. 0 turns the rule off.",
				&governor_long_time_ms, 500, 0, PGC_SIGHUP);
	define_time("pg_governor.long_elapsed_time",
				"Time after which a transaction is long, whatever it has done.",
				"0 turns the rule off.",
				&governor_long_elapsed_time_ms, 0, 0, PGC_SIGHUP);
	define_limit("pg_governor.long_limit",
				 "Long transactions of a class that let others in beside them.",
				 "-1 means as many as the hard maximum allows.",
				 &governor_long_limit, -1);
	define_time("pg_governor.stall_time",
				"Time without a slot given back after which one more waiter is let in.",
				"0 turns the rule off.",
				&governor_stall_time_ms, 500, 0, PGC_SIGHUP);
	define_time("pg_governor.discount_time",
				"Time after which a session that does not work no longer counts against the limit.",
				"Five times as much for one that waits for a lock. 0 turns the rule off.",
				&governor_discount_time_ms, 100, 0, PGC_SIGHUP);
	define_time("pg_governor.idle_holder_timeout",
				"Time in which a session with a slot may be idle in its transaction while others queue.",
				"Then it is terminated. 0 means for any time.",
				&governor_idle_holder_timeout_ms, 0, 0, PGC_SIGHUP);
}

/* What is done about a session that keeps the slots of others. */
static void
define_culprits(void)
{
	DefineCustomEnumVariable("pg_governor.cancel_culprit",
							 "What happens to a transaction that keeps most slots of a gate while others queue: \"off\", \"observe\" or \"on\".",
							 "\"observe\" only names it in the log and in pg_governor_culprits; \"on\" cancels it.",
							 &governor_cancel_culprit, GOVERNOR_CULPRIT_OFF, cancel_culprits,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
	define_time("pg_governor.culprit_time",
				"Time for which a transaction keeps most slots of a gate before pg_governor.cancel_culprit applies.",
				NULL,
				&governor_culprit_time_ms, 1000, 100, PGC_SIGHUP);
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
							   "The pools besides \"default\", with what differs from the settings, such as "
							   "\"reports(query=2, queue_timeout=60s), batch(transaction=1, weight=2)\".",
							   "What is not named here is as in the settings.",
							   &pools_setting, "", PGC_SIGHUP, GUC_LIST_INPUT,
							   governor_pools_check, governor_pools_assign, NULL);
	DefineCustomStringVariable("pg_governor.pool_rules",
							   "Which transactions take slots of another pool than their session's own, such as "
							   "\"reports(role=app, tag.job=report), batch(role=etl, application=nightly)\".",
							   "The first rule whose conditions hold decides: role, database, application, tag.KEY, query_id.",
							   &pool_rules_setting, "", PGC_SIGHUP, GUC_LIST_INPUT,
							   governor_rules_check, governor_rules_assign, NULL);
	DefineCustomStringVariable("pg_governor.pool",
							   "Pool whose slots this session takes.",
							   "Meant for ALTER ROLE … SET and ALTER DATABASE … SET; SET ROLE does not change it.",
							   &governor_pool_name, GOVERNOR_DEFAULT_POOL, PGC_SUSET, 0,
							   pool_name_check, identity_changed, NULL);
	DefineCustomEnumVariable("pg_governor.unknown_pool",
							 "What happens to a session whose pool is not listed: \"default\" or \"error\".",
							 "\"default\" puts it into the pool of that name.",
							 &governor_unknown_pool, GOVERNOR_UNKNOWN_DEFAULT, unknown_pools,
							 PGC_SIGHUP, 0, NULL, unknown_pool_changed, NULL);
}

static void
define_roles(void)
{
	DefineCustomIntVariable("pg_governor.reserved_slots",
							"Slots beyond every limit for superusers and reserved roles.",
							"They are used when the session would have to queue.",
							&governor_reserved_slots, 3, 0, GOVERNOR_LIMIT_MAX,
							PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomStringVariable("pg_governor.reserved_roles",
							   "Roles that may use reserved slots, besides superusers.",
							   "Names of login roles, separated by commas.",
							   &reserved_roles_setting, "", PGC_SIGHUP, GUC_LIST_INPUT,
							   governor_roles_check, governor_reserved_roles_assign, NULL);
	DefineCustomStringVariable("pg_governor.exempt_roles",
							   "Roles that never queue and take no slot.",
							   "Names of login roles, separated by commas: those that supervise the server.",
							   &exempt_roles_setting, "", PGC_SIGHUP, GUC_LIST_INPUT,
							   governor_roles_check, governor_exempt_roles_assign, NULL);
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
							 "A session that waits there has the locks of the tables that its statement names.",
							 &governor_gate_autocommit, false, PGC_SUSET, 0, NULL, NULL, NULL);
	DefineCustomRealVariable("pg_governor.big_query_cost",
							 "Planner cost from which on a query counts as big.",
							 "0 means that only the hint makes a query big.",
							 &governor_big_query_cost, 0, 0, DBL_MAX,
							 PGC_SUSET, 0, NULL, NULL, NULL);
}

/* Who is next, and who is refused. */
static void
define_order(void)
{
	DefineCustomEnumVariable("pg_governor.policy",
							 "Who gets the next slot: \"fifo\", \"throughput\" or \"codel\".",
							 "\"throughput\" is fifo until the queue is long; \"codel\" is fifo and refuses sessions while the queue is slow.",
							 &governor_policy, GOVERNOR_THROUGHPUT, governor_policies,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomIntVariable("pg_governor.unevenness",
							"How many times the mean wait the longest may be: transactions in a row of one session, with policy \"throughput\".",
							"1 is fifo.",
							&governor_unevenness, 8, 1, 1000,
							PGC_SIGHUP, 0, NULL, NULL, NULL);
	define_time("pg_governor.pass_over_max",
				"Time from which on a waiter is no longer passed over.",
				NULL,
				&governor_pass_over_max_ms, 4000, 0, PGC_SIGHUP);
	define_time("pg_governor.codel_target",
				"Wait that the first in the queue may have, with policy \"codel\".",
				NULL,
				&governor_codel_target_ms, 200, 1, PGC_SIGHUP);
	define_time("pg_governor.codel_interval",
				"Time for which the wait is longer than that before sessions are refused.",
				NULL,
				&governor_codel_interval_ms, 2000, 1, PGC_SIGHUP);
	DefineCustomIntVariable("pg_governor.max_queue",
							"Length of a queue from which on further sessions are refused with an error.",
							"0 means no bound.",
							&governor_max_queue, 0, 0, INT_MAX / 2,
							PGC_SIGHUP, 0, NULL, NULL, NULL);
	DefineCustomBoolVariable("pg_governor.refuse_early",
							 "Refuses at once who would, by the queue's pace, not get a slot or not be done before its timeout.",
							 "Only for timeouts that end in an error: those of the queue, statement_timeout and transaction_timeout.",
							 &governor_refuse_early, false, PGC_SIGHUP, 0, NULL, NULL, NULL);
}

static void
define_waiting(void)
{
	define_time("pg_governor.queue_timeout",
				"Time to queue after which pg_governor.on_timeout decides.",
				"0 means no timeout.",
				&governor_queue_timeout_ms, 10000, 0, PGC_SIGHUP);
	define_time("pg_governor.user_queue_timeout",
				"Time to queue after which this session's transaction fails with an error.",
				"For every user; it can only be shorter than what pg_governor.queue_timeout allows. 0 means none.",
				&governor_user_queue_timeout_ms, 0, 0, PGC_USERSET);
	define_time("pg_governor.log_queue_waits",
				"Time to queue from which on a wait is logged.",
				"-1 logs none.",
				&governor_log_queue_waits_ms, -1, -1, PGC_SUSET);
	define_time("pg_governor.notice_queue_waits",
				"Time to queue after which the client is told that it waits.",
				"-1 tells none.",
				&governor_notice_queue_waits_ms, -1, -1, PGC_USERSET);
	DefineCustomEnumVariable("pg_governor.on_timeout",
							 "What a session does after pg_governor.queue_timeout: \"run\", \"error\" or \"wait\".",
							 NULL,
							 &governor_on_timeout, GOVERNOR_TIMEOUT_RUN, governor_on_timeouts,
							 PGC_SIGHUP, 0, NULL, NULL, NULL);
}

static void
identity_changed(const char *newval pg_attribute_unused(), void *extra pg_attribute_unused())
{
	governor_identity_generation++;
}

static void
unknown_pool_changed(int newval pg_attribute_unused(), void *extra pg_attribute_unused())
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
