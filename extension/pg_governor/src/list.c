/*
 * list.c
 *		Reads the settings that are lists, and refuses what means nothing, with the
 *		place in the value.
 *
 *	pools = [ pool { "," pool } ];  pool = word "(" [ option { "," option } ] ")"
 *	option = ( class | "weight" ) "=" number | "queue_timeout" "=" time |
 *		( "on_timeout" | "policy" ) "=" word
 *	roles = [ role { "," role } ];  role = word | '"' name '"'
 */
#include "list.h"

#include <limits.h>

#include "settings.h"

/* Bounds the memory that one value can ask for. */
#define LIST_MAX 1000

GovernorPoolList *governor_listed_pools = NULL;
GovernorRoleList *governor_reserved_roles = NULL;
GovernorRoleList *governor_exempt_roles = NULL;

/* What is being read, and why it was refused. */
typedef struct Reader
{
	const char *at;
	const char *why;
} Reader;

static bool read_pools(Reader *reader, GovernorPoolList *list, int room);
static bool read_pool(Reader *reader, GovernorPoolLimits *pool);
static bool read_option(Reader *reader, GovernorPoolLimits *pool);
static bool read_number(Reader *reader, int least, int most, int *number);
static bool read_time(Reader *reader, int *ms);
static bool read_choice(Reader *reader, const struct config_enum_entry *choices, int *chosen);
static bool read_roles(Reader *reader, GovernorRoleList *list, int room);
static bool read_role(Reader *reader, char *name);
static bool read_word(Reader *reader, char *word, Size size);
static bool read_char(Reader *reader, char wanted);
static bool refuse(Reader *reader, const char *at, const char *why);
static void skip_space(Reader *reader);
static int	count_of(const char *text, char wanted);

bool
governor_pools_check(char **newval, void **extra, GucSource source pg_attribute_unused())
{
	Reader		reader = {.at = *newval};
	int			room = count_of(*newval, '(');
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
	Reader		reader = {.at = *newval};
	int			room = count_of(*newval, ',') + 1;
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
read_pools(Reader *reader, GovernorPoolList *list, int room)
{
	skip_space(reader);
	while (*reader->at != '\0')
	{
		const char *start;

		if (list->count > 0 && !read_char(reader, ','))
			return refuse(reader, reader->at, "Expected a comma");
		skip_space(reader);
		start = reader->at;
		if (list->count >= room)
			return refuse(reader, start, "Expected a pool with its limits in parentheses");
		if (!read_pool(reader, &list->pools[list->count]))
			return false;
		for (int i = 0; i < list->count; i++)
			if (strcmp(list->pools[i].name, list->pools[list->count].name) == 0)
				return refuse(reader, start, "A pool is listed twice");
		list->count++;
		skip_space(reader);
	}
	return true;
}

static bool
read_pool(Reader *reader, GovernorPoolLimits *pool)
{
	for (int class = 0; class < GOVERNOR_CLASSES; class++)
		pool->limits[class] = GOVERNOR_NOT_NAMED;
	pool->weight = pool->queue_timeout_ms = pool->on_timeout = pool->policy = GOVERNOR_NOT_NAMED;
	if (!read_word(reader, pool->name, sizeof(pool->name)))
		return refuse(reader, reader->at, "Expected the name of a pool");
	if (!read_char(reader, '('))
		return refuse(reader, reader->at, "Expected an opening parenthesis");
	if (read_char(reader, ')'))
		return true;
	do
	{
		if (!read_option(reader, pool))
			return false;
	} while (read_char(reader, ','));
	return read_char(reader, ')') ||
		refuse(reader, reader->at, "Expected a comma or a closing parenthesis");
}

static bool
read_option(Reader *reader, GovernorPoolLimits *pool)
{
	char		word[NAMEDATALEN];
	const char *start;
	int		   *into = NULL;

	skip_space(reader);
	start = reader->at;
	if (!read_word(reader, word, sizeof(word)))
		return refuse(reader, start, "Expected a class or an option");
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
	if (into == NULL)
		return refuse(reader, start, "There is no such class or option");
	if (*into != GOVERNOR_NOT_NAMED)
		return refuse(reader, start, "A class or option is listed twice");
	if (!read_char(reader, '='))
		return refuse(reader, reader->at, "Expected an equals sign");
	if (into == &pool->queue_timeout_ms)
		return read_time(reader, into);
	if (into == &pool->on_timeout)
		return read_choice(reader, governor_on_timeouts, into);
	if (into == &pool->policy)
		return read_choice(reader, governor_policies, into);
	if (into == &pool->weight)
		return read_number(reader, 1, GOVERNOR_WEIGHT_MAX, into);
	return read_number(reader, 0, GOVERNOR_LIMIT_MAX, into);
}

static bool
read_number(Reader *reader, int least, int most, int *number)
{
	char		word[NAMEDATALEN];
	const char *start;

	skip_space(reader);
	start = reader->at;
	if (!read_word(reader, word, sizeof(word)) || strspn(word, "0123456789") != strlen(word))
		return refuse(reader, start, "Expected a number");
	/* More digits than this would not fit. */
	*number = strlen(word) > 9 ? INT_MAX : atoi(word);
	if (*number >= least && *number <= most)
		return true;
	return refuse(reader, start, most == GOVERNOR_LIMIT_MAX ? "A limit is at most 100000" :
				  "A weight is 1 to 1000");
}

/* As in postgresql.conf: milliseconds, or with a unit. */
static bool
read_time(Reader *reader, int *ms)
{
	char		word[NAMEDATALEN];
	const char *start;

	skip_space(reader);
	start = reader->at;
	if (!read_word(reader, word, sizeof(word)) || !parse_int(word, ms, GUC_UNIT_MS, NULL) ||
		*ms < 0 || *ms > INT_MAX / 1000)
		return refuse(reader, start, "Expected a time, such as 500ms or 10s");
	return true;
}

static bool
read_choice(Reader *reader, const struct config_enum_entry *choices, int *chosen)
{
	char		word[NAMEDATALEN];
	const char *start;

	skip_space(reader);
	start = reader->at;
	if (read_word(reader, word, sizeof(word)))
		for (; choices->name != NULL; choices++)
			if (strcmp(word, choices->name) == 0)
			{
				*chosen = choices->val;
				return true;
			}
	return refuse(reader, start, "There is no such choice");
}

static bool
read_roles(Reader *reader, GovernorRoleList *list, int room)
{
	skip_space(reader);
	while (*reader->at != '\0' || list->count > 0)
	{
		Assert(list->count < room);
		if (!read_role(reader, list->names[list->count]))
			return false;
		list->count++;
		if (*reader->at == '\0')
			break;
		if (!read_char(reader, ','))
			return refuse(reader, reader->at, "Expected a comma");
		if (list->count >= room)
			return refuse(reader, reader->at, "Expected the name of a role");
	}
	return true;
}

/* As an identifier in SQL: in lower case, but not between double quotes. */
static bool
read_role(Reader *reader, char *name)
{
	const char *start;
	Size		length = 0;

	skip_space(reader);
	start = reader->at;
	if (*start != '"')
	{
		if (!read_word(reader, name, NAMEDATALEN) || strchr(name, '"') != NULL)
			return refuse(reader, start, "Expected the name of a role");
		for (char *c = name; *c != '\0'; c++)
			if (*c >= 'A' && *c <= 'Z')
				*c += 'a' - 'A';
	}
	else
	{
		for (reader->at++; *reader->at != '"' || *++reader->at == '"'; reader->at++)
		{
			if (*reader->at == '\0' || length + 1 >= NAMEDATALEN)
				return refuse(reader, start, *reader->at == '\0' ?
							  "A quoted name does not end" : "A name is too long");
			name[length++] = *reader->at;
		}
		name[length] = '\0';
		if (length == 0)
			return refuse(reader, start, "Expected the name of a role");
	}
	skip_space(reader);
	return true;
}

/* Everything but white space and the punctuation of the lists. */
static bool
read_word(Reader *reader, char *word, Size size)
{
	Size		length;

	skip_space(reader);
	length = strcspn(reader->at, " \t\r\n(),=");
	if (length == 0 || length >= size)
		return false;
	memcpy(word, reader->at, length);
	word[length] = '\0';
	reader->at += length;
	return true;
}

static bool
read_char(Reader *reader, char wanted)
{
	skip_space(reader);
	if (*reader->at != wanted)
		return false;
	reader->at++;
	return true;
}

static bool
refuse(Reader *reader, const char *at, const char *why)
{
	reader->at = at;
	reader->why = why;
	return false;
}

static void
skip_space(Reader *reader)
{
	reader->at += strspn(reader->at, " \t\r\n");
}

static int
count_of(const char *text, char wanted)
{
	int			found = 0;

	for (; *text != '\0'; text++)
		found += *text == wanted;
	return found;
}
