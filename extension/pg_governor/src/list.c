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

static bool read_pools(GovernorReader *reader, GovernorPoolList *list, int room);
static bool read_pool(GovernorReader *reader, GovernorPoolLimits *pool);
static bool read_option(GovernorReader *reader, GovernorPoolLimits *pool);
static bool read_number(GovernorReader *reader, int least, int most, int *number);
static bool read_time(GovernorReader *reader, int *ms);
static bool read_roles(GovernorReader *reader, GovernorRoleList *list, int room);

bool
governor_pools_check(char **newval, void **extra, GucSource source pg_attribute_unused())
{
	GovernorReader		reader = {.at = *newval};
	int			room = governor_read_count(*newval, '(');
	GovernorPoolList *list;

	if (room > LIST_MAX)
	{
		GUC_check_errdetail("At most %d pools can be listed.", LIST_MAX);
		return false;
	}
	list = governor_setting_alloc(offsetof(GovernorPoolList, pools) +
								  room * sizeof(GovernorPoolLimits));
	if (list == NULL)
		return false;
	list->count = 0;
	if (!read_pools(&reader, list, room))
	{
		governor_setting_free(list);
		GUC_check_errdetail("%s, at \"%s\".", reader.why, reader.at);
		GUC_check_errhint("Write for example \"reports(query=2, queue_timeout=60s), "
						  "batch(transaction=1)\".");
		return false;
	}
	*extra = list;
	return true;
}

void
governor_pools_assign(const char *newval pg_attribute_unused(), void *extra)
{
	governor_listed_pools = extra;
}

bool
governor_roles_check(char **newval, void **extra, GucSource source pg_attribute_unused())
{
	GovernorReader		reader = {.at = *newval};
	int			room = governor_read_count(*newval, ',') + 1;
	GovernorRoleList *list;

	if (room > LIST_MAX)
	{
		GUC_check_errdetail("At most %d roles can be listed.", LIST_MAX);
		return false;
	}
	list = governor_setting_alloc(offsetof(GovernorRoleList, names) + room * NAMEDATALEN);
	if (list == NULL)
		return false;
	list->count = 0;
	if (!read_roles(&reader, list, room))
	{
		governor_setting_free(list);
		GUC_check_errdetail("%s, at \"%s\".", reader.why, reader.at);
		GUC_check_errhint("Write names of roles as in SQL, separated by commas.");
		return false;
	}
	*extra = list;
	return true;
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
read_pools(GovernorReader *reader, GovernorPoolList *list, int room)
{
	governor_read_space(reader);
	while (*reader->at != '\0')
	{
		const char *start;

		if (list->count > 0 && !governor_read_char(reader, ','))
			return governor_read_refuse(reader, reader->at, "Expected a comma");
		governor_read_space(reader);
		start = reader->at;
		if (list->count >= room)
			return governor_read_refuse(reader, start, "Expected a pool with its limits in parentheses");
		if (!read_pool(reader, &list->pools[list->count]))
			return false;
		for (int i = 0; i < list->count; i++)
			if (strcmp(list->pools[i].name, list->pools[list->count].name) == 0)
				return governor_read_refuse(reader, start, "A pool is listed twice");
		list->count++;
		governor_read_space(reader);
	}
	return true;
}

static bool
read_pool(GovernorReader *reader, GovernorPoolLimits *pool)
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

static bool
read_roles(GovernorReader *reader, GovernorRoleList *list, int room)
{
	governor_read_space(reader);
	while (*reader->at != '\0' || list->count > 0)
	{
		Assert(list->count < room);
		if (!governor_read_name(reader, list->names[list->count], NAMEDATALEN, true, "Expected the name of a role"))
			return false;
		governor_read_space(reader);
		list->count++;
		if (*reader->at == '\0')
			break;
		if (!governor_read_char(reader, ','))
			return governor_read_refuse(reader, reader->at, "Expected a comma");
		if (list->count >= room)
			return governor_read_refuse(reader, reader->at, "Expected the name of a role");
	}
	return true;
}
