/*
 * list.c
 *		Reads the settings that are lists, and refuses what means nothing, with the
 *		place in the value.
 *
 *	pools = [ pool { "," pool } ];  pool = word "(" [ option { "," option } ] ")"
 *	option = ( class | "weight" ) "=" number | "queue_timeout" "=" time |
 *		( "on_timeout" | "policy" | "mode" ) "=" word
 *	roles = [ role { "," role } ];  role = word | '"' name '"'
 */
#include "list.h"

#include <limits.h>

#include "reader.h"
#include "settings.h"

/* Bounds the memory that one value can ask for. */
#define LIST_MAX 1000

GovernorPoolList *governor_listed_pools = NULL;
GovernorRoleList *governor_reserved_roles = NULL;
GovernorRoleList *governor_exempt_roles = NULL;

static bool is_too_long(int items, const char *what);
static bool read_pool(GovernorReader *reader, void *into);
static bool read_limits(GovernorReader *reader, GovernorPoolLimits *pool);
static bool read_option(GovernorReader *reader, GovernorPoolLimits *pool);
static bool read_number(GovernorReader *reader, int least, int most, int *number);
static bool read_time(GovernorReader *reader, int *ms);
static bool read_role(GovernorReader *reader, void *into);

bool
governor_pools_check(char **newval, void **extra, GucSource source pg_attribute_unused())
{
	int			room = governor_read_count(*newval, '(');
	GovernorPoolList *list;

	if (is_too_long(room, "pools"))
		return false;
	list = governor_setting_alloc(offsetof(GovernorPoolList, pools) + room * sizeof(GovernorPoolLimits));
	if (list == NULL)
		return false;
	list->count = 0;
	return governor_read_setting((GovernorReader) {.at = *newval}, list, read_pool,
								 "Write for example \"reports(query=2, queue_timeout=60s), batch(transaction=1)\".", extra);
}

void
governor_pools_assign(const char *newval pg_attribute_unused(), void *extra)
{
	governor_listed_pools = extra;
}

bool
governor_roles_check(char **newval, void **extra, GucSource source pg_attribute_unused())
{
	int			room = governor_read_count(*newval, ',') + 1;
	GovernorRoleList *list;

	if (is_too_long(room, "roles"))
		return false;
	list = governor_setting_alloc(offsetof(GovernorRoleList, names) + room * NAMEDATALEN);
	if (list == NULL)
		return false;
	list->count = 0;
	return governor_read_setting((GovernorReader) {.at = *newval}, list, read_role,
								 "Write names of roles as in SQL, separated by commas.", extra);
}

void
governor_reserved_roles_assign(const char *newval pg_attribute_unused(), void *extra)
{
	governor_reserved_roles = extra;
	governor_identity_generation++;
}

void
governor_exempt_roles_assign(const char *newval pg_attribute_unused(), void *extra)
{
	governor_exempt_roles = extra;
	governor_identity_generation++;
}

static bool
is_too_long(int items, const char *what)
{
	if (items <= LIST_MAX)
		return false;
	GUC_check_errdetail("At most %d %s can be listed.", LIST_MAX, what);
	return true;
}

static bool
read_pool(GovernorReader *reader, void *into)
{
	GovernorPoolList *list = into;
	const char *start = reader->at;

	/* There is room for as many as there are parentheses. */
	if (strchr(start, '(') == NULL)
		return governor_read_refuse(reader, start, "Expected a pool with its limits in parentheses");
	if (!read_limits(reader, &list->pools[list->count]))
		return false;
	for (int i = 0; i < list->count; i++)
		if (strcmp(list->pools[i].name, list->pools[list->count].name) == 0)
			return governor_read_refuse(reader, start, "A pool is listed twice");
	list->count++;
	return true;
}

static bool
read_limits(GovernorReader *reader, GovernorPoolLimits *pool)
{
	for (int class = 0; class < GOVERNOR_CLASSES; class++)
		pool->limits[class] = GOVERNOR_NOT_NAMED;
	pool->weight = pool->queue_timeout_ms = pool->on_timeout = pool->policy = pool->mode = GOVERNOR_NOT_NAMED;
	if (!governor_read_word(reader, pool->name, sizeof(pool->name)))
		return governor_read_refuse(reader, reader->at, "Expected the name of a pool");
	if (!governor_read_char(reader, '('))
		return governor_read_refuse(reader, reader->at, "Expected an opening parenthesis");
	if (governor_read_char(reader, ')'))
		return true;
	do
	{
		if (!read_option(reader, pool))
			return false;
	} while (governor_read_char(reader, ','));
	return governor_read_char(reader, ')') ||
		governor_read_refuse(reader, reader->at, "Expected a comma or a closing parenthesis");
}

static bool
read_option(GovernorReader *reader, GovernorPoolLimits *pool)
{
	char		word[NAMEDATALEN];
	const char *start;
	int		   *into = NULL;

	governor_read_space(reader);
	start = reader->at;
	if (!governor_read_word(reader, word, sizeof(word)))
		return governor_read_refuse(reader, start, "Expected a class or an option");
	for (int class = 0; class < GOVERNOR_CLASSES; class++)
		if (strcmp(word, governor_class_names[class]) == 0)
			into = &pool->limits[class];
	if (strcmp(word, "weight") == 0)
		into = &pool->weight;
	else if (strcmp(word, "queue_timeout") == 0)
		into = &pool->queue_timeout_ms;
	else if (strcmp(word, "on_timeout") == 0)
		into = &pool->on_timeout;
	else if (strcmp(word, "policy") == 0)
		into = &pool->policy;
	else if (strcmp(word, "mode") == 0)
		into = &pool->mode;
	if (into == NULL)
		return governor_read_refuse(reader, start, "There is no such class or option");
	if (*into != GOVERNOR_NOT_NAMED)
		return governor_read_refuse(reader, start, "A class or option is listed twice");
	if (!governor_read_char(reader, '='))
		return governor_read_refuse(reader, reader->at, "Expected an equals sign");
	if (into == &pool->queue_timeout_ms)
		return read_time(reader, into);
	if (into == &pool->on_timeout)
		return governor_read_choice(reader, governor_on_timeouts, into);
	if (into == &pool->policy)
		return governor_read_choice(reader, governor_policies, into);
	if (into == &pool->mode)
		return governor_read_choice(reader, governor_modes, into);
	if (into == &pool->weight)
		return read_number(reader, 1, GOVERNOR_WEIGHT_MAX, into);
	return read_number(reader, 0, GOVERNOR_LIMIT_MAX, into);
}

static bool
read_number(GovernorReader *reader, int least, int most, int *number)
{
	char		word[NAMEDATALEN];
	const char *start;

	governor_read_space(reader);
	start = reader->at;
	if (!governor_read_word(reader, word, sizeof(word)) || strspn(word, "0123456789") != strlen(word))
		return governor_read_refuse(reader, start, "Expected a number");
	/* More digits than this would not fit. */
	*number = strlen(word) > 9 ? INT_MAX : atoi(word);
	if (*number >= least && *number <= most)
		return true;
	return governor_read_refuse(reader, start, most == GOVERNOR_LIMIT_MAX ? "A limit is at most 100000" :
				  "A weight is 1 to 1000");
}

/* As in postgresql.conf: milliseconds, or with a unit. */
static bool
read_time(GovernorReader *reader, int *ms)
{
	char		word[NAMEDATALEN];
	const char *start;

	governor_read_space(reader);
	start = reader->at;
	if (!governor_read_word(reader, word, sizeof(word)) || !parse_int(word, ms, GUC_UNIT_MS, NULL) ||
		*ms < 0 || *ms > INT_MAX / 1000)
		return governor_read_refuse(reader, start, "Expected a time, such as 500ms or 10s");
	return true;
}

/* There is room for as many as there are commas, and one. */
static bool
read_role(GovernorReader *reader, void *into)
{
	GovernorRoleList *list = into;

	if (!governor_read_name(reader, list->names[list->count], NAMEDATALEN, true, "Expected the name of a role"))
		return false;
	list->count++;
	return true;
}
