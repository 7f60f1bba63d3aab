/*
 * pool.c
 *		The registry of pools: which names there are, and each one's limits.
 *
 * A pool comes into being when the setting pg_governor.pools names it or when
 * the first session uses it, and stays until the server stops.  The monitor
 * publishes limits; sessions only read them.
 */
#include "compat.h"

#include "monitor.h"
#include "pool.h"
#include "settings.h"
#include "state.h"

/* The parsed form of pg_governor.pools. */
typedef struct PoolLimits
{
	char		name[NAMEDATALEN];
	int			limits[GOVERNOR_CLASSES];	/* NOT_NAMED = as in the settings */
} PoolLimits;

typedef struct PoolList
{
	int			count;
	PoolLimits	pools[FLEXIBLE_ARRAY_MEMBER];
} PoolList;

#define NOT_NAMED (-1)
#define LISTED_POOLS_MAX 1000

char	   *governor_pools_setting = NULL;
static PoolList *listed_pools = NULL;

static int	pool_add(const char *name);
static void publish_limits(GovernorPool *pool);
static int	pool_limit(const char *name, GovernorClass class);
static bool parse_pool(const char **at, PoolLimits *pool);
static bool parse_limit(const char **at, PoolLimits *pool);
static bool parse_word(const char **at, char *word, Size size);
static bool parse_char(const char **at, char wanted);
static void skip_space(const char **at);

/* Called once, while the server starts and no other process is there. */
void
governor_pools_start(void)
{
	pool_add(GOVERNOR_DEFAULT_POOL);
	for (int i = 0; listed_pools != NULL && i < listed_pools->count; i++)
		if (governor->pool_count < governor->pool_max)
			pool_add(listed_pools->pools[i].name);
}

/*
 * Returns the pool's index, or GOVERNOR_NO_POOL if there is no room for another
 * one: its sessions are then not limited, which is told once in the log.
 */
int
governor_pool_find_or_add(const char *name)
{
	int			found = GOVERNOR_NO_POOL;
	bool		tell = false;

	LWLockAcquire(governor->registry_lock, LW_EXCLUSIVE);
	for (int i = 0; i < governor->pool_count && found == GOVERNOR_NO_POOL; i++)
		if (strcmp(governor->pools[i].name, name) == 0)
			found = i;
	if (found == GOVERNOR_NO_POOL && governor->pool_count < governor->pool_max)
	{
		/* Its limits come from this session's reading: the monitor's counts. */
		found = pool_add(name);
		pg_atomic_write_u32(&governor->limits_stale, 1);
	}
	if (found == GOVERNOR_NO_POOL && !governor->registry_full_told)
		tell = governor->registry_full_told = true;
	LWLockRelease(governor->registry_lock);

	if (pg_atomic_read_u32(&governor->limits_stale) != 0)
		governor_monitor_wake();
	if (tell)
		ereport(LOG,
				(errmsg("pg_governor: no room for pool \"%s\", its sessions are not limited", name),
				 errhint("Increase pg_governor.max_pools.")));
	return found;
}

/* The monitor's part: settings into shared memory, for all pools. */
void
governor_pools_publish_limits(void)
{
	LWLockAcquire(governor->registry_lock, LW_EXCLUSIVE);
	for (int i = 0; listed_pools != NULL && i < listed_pools->count; i++)
	{
		bool		known = false;

		for (int j = 0; j < governor->pool_count && !known; j++)
			known = strcmp(governor->pools[j].name, listed_pools->pools[i].name) == 0;
		if (!known && governor->pool_count < governor->pool_max)
			pool_add(listed_pools->pools[i].name);
	}
	for (int i = 0; i < governor->pool_count; i++)
		publish_limits(&governor->pools[i]);
	LWLockRelease(governor->registry_lock);
}

static int
pool_add(const char *name)
{
	int			index = governor->pool_count;
	GovernorPool *pool = &governor->pools[index];

	strlcpy(pool->name, name, NAMEDATALEN);
	publish_limits(pool);
	governor->pool_count = index + 1;
	return index;
}

/*
 * The capacity is opened only here and by the monitor's discounts.  Without a
 * monitor nobody would ever be let in for any other reason than a slot given
 * back, so the gates stay open until there is one.
 */
static void
publish_limits(GovernorPool *pool)
{
	bool		governed = governor_enabled && governor->monitor != GOVERNOR_NOBODY;

	for (int class = 0; class < GOVERNOR_CLASSES; class++)
	{
		GovernorGate *gate = &pool->gates[class];
		int			limit = governor_enabled ? pool_limit(pool->name, class) : 0;

		pg_atomic_write_u32(&gate->limit, limit);
		pg_atomic_write_u32(&gate->capacity, governed ? limit : 0);
	}
}

static int
pool_limit(const char *name, GovernorClass class)
{
	for (int i = 0; listed_pools != NULL && i < listed_pools->count; i++)
		if (strcmp(listed_pools->pools[i].name, name) == 0 &&
			listed_pools->pools[i].limits[class] != NOT_NAMED)
			return listed_pools->pools[i].limits[class];
	return governor_limits[class];
}

/* pools = [ pool { "," pool } ];  pool = name "(" [ limit { "," limit } ] ")" */
bool
governor_pools_check(char **newval, void **extra, GucSource source pg_attribute_unused())
{
	const char *at = *newval;
	PoolList   *list;
	int			room = 1;

	for (const char *c = at; *c != '\0'; c++)
		room += (*c == '(');
	if (room > LISTED_POOLS_MAX)
	{
		GUC_check_errdetail("At most %d pools can be listed.", LISTED_POOLS_MAX - 1);
		return false;
	}
	list = governor_setting_alloc(offsetof(PoolList, pools) + room * sizeof(PoolLimits));
	if (list == NULL)
		return false;
	list->count = 0;
	*extra = list;

	skip_space(&at);
	while (*at != '\0')
	{
		if ((list->count > 0 && !parse_char(&at, ',')) ||
			list->count >= room ||
			!parse_pool(&at, &list->pools[list->count]))
		{
			GUC_check_errdetail("Not understood from here on: \"%s\".", at);
			GUC_check_errhint("Write for example \"reports(query=2, transaction=4), "
							  "batch(transaction=1)\".");
			return false;
		}
		list->count++;
		skip_space(&at);
	}
	return true;
}

void
governor_pools_assign(const char *newval pg_attribute_unused(), void *extra)
{
	listed_pools = extra;
}

static bool
parse_pool(const char **at, PoolLimits *pool)
{
	for (int class = 0; class < GOVERNOR_CLASSES; class++)
		pool->limits[class] = NOT_NAMED;
	if (!parse_word(at, pool->name, sizeof(pool->name)) || !parse_char(at, '('))
		return false;
	if (parse_char(at, ')'))
		return true;
	do
	{
		if (!parse_limit(at, pool))
			return false;
	} while (parse_char(at, ','));
	return parse_char(at, ')');
}

static bool
parse_limit(const char **at, PoolLimits *pool)
{
	char		word[NAMEDATALEN];
	char		number[8];
	const char *start;

	skip_space(at);
	start = *at;
	if (!parse_word(at, word, sizeof(word)) || !parse_char(at, '='))
		return false;
	for (int class = 0; class < GOVERNOR_CLASSES; class++)
	{
		if (strcmp(word, governor_class_names[class]) != 0)
			continue;
		if (!parse_word(at, number, sizeof(number)) ||
			strspn(number, "0123456789") != strlen(number))
			return false;
		pool->limits[class] = atoi(number);
		return true;
	}
	*at = start;
	return false;
}

/* Everything but white space and the punctuation of the list. */
static bool
parse_word(const char **at, char *word, Size size)
{
	Size		length;

	skip_space(at);
	length = strcspn(*at, " \t\r\n(),=");
	if (length == 0 || length >= size)
		return false;
	memcpy(word, *at, length);
	word[length] = '\0';
	*at += length;
	return true;
}

static bool
parse_char(const char **at, char wanted)
{
	skip_space(at);
	if (**at != wanted)
		return false;
	(*at)++;
	return true;
}

static void
skip_space(const char **at)
{
	*at += strspn(*at, " \t\r\n");
}
