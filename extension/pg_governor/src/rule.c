/*
 * rule.c
 *		The rules by which a transaction gets another pool than its session's own: reads the
 *		setting, and says whether a rule holds.
 *
 *	rules = [ rule { "," rule } ];  rule = pool "(" condition { "," condition } ")"
 *	condition = ( "role" | "database" | "application" | "tag." name ) "=" name | "query_id" "=" number
 *
 * The first rule that holds decides.  Of the conditions of one kind, and of one tag, one has to hold, and of
 * different kinds all.  Whoever writes a statement chooses its tags, its text and the name of its application: so
 * a rule by those names the roles that may have its pool.
 */
#include "rule.h"

#include "common/hashfn.h"

#include "reader.h"

GovernorRuleList *governor_rules = NULL;

#define EVERYBODY "public"

static bool read_rule(GovernorReader *reader, void *into);
static bool read_conditions(GovernorReader *reader, GovernorRuleList *list, GovernorRule *rule);
static bool read_condition(GovernorReader *reader, GovernorCondition *condition);
static bool read_text(GovernorReader *reader, const char **text, bool folded, const char *expected);
static bool read_query_id(GovernorReader *reader, int64 *query_id);
static bool is_of_client(GovernorConditionKind kind);
static const GovernorCondition *conditions_of(const GovernorRule *rule);
static bool has(const GovernorRule *rule, GovernorConditionKind kind);
static bool all_hold(const GovernorRule *rule, const GovernorFacts *facts, bool (*counts) (GovernorConditionKind));
static bool any_holds(const GovernorRule *rule, const GovernorCondition *like, const GovernorFacts *facts);
static bool holds(const GovernorCondition *condition, const GovernorFacts *facts);
static bool is_no_role(GovernorConditionKind kind);
static bool is_role(GovernorConditionKind kind);
static bool is_of_session(GovernorConditionKind kind);

bool
governor_rules_check(char **newval, void **extra, GucSource source pg_attribute_unused())
{
	Size		length = strlen(*newval);
	int			rules = governor_read_count(*newval, '(');
	int			conditions = governor_read_count(*newval, '=');
	/* Each string that is read is not longer than what stands there, and ends with a zero byte. */
	Size		room = 2 * length + 2 * conditions + rules + 1;
	Size		list_size = MAXALIGN(offsetof(GovernorRuleList, rules) + rules * sizeof(GovernorRule));
	GovernorRuleList *list = governor_setting_alloc(list_size + conditions * sizeof(GovernorCondition) + room);

	if (list == NULL)
		return false;
	list->count = 0;
	list->fingerprint = hash_bytes_extended((const unsigned char *) *newval, (int) length, 0);
	list->conditions = (GovernorCondition *) ((char *) list + list_size);
	return governor_read_setting((GovernorReader) {.at = *newval, .store = (char *) (list->conditions + conditions), .store_left = room},
								 list, read_rule,
								 "Write for example \"reports(role=app, tag.job=report), batch(role=etl, application=nightly)\".", extra);
}

void
governor_rules_assign(const char *newval pg_attribute_unused(), void *extra)
{
	governor_rules = extra;
}

static bool
read_rule(GovernorReader *reader, void *into)
{
	GovernorRuleList *list = into;

	if (list->count == GOVERNOR_RULES_MAX)
		return governor_read_refuse(reader, reader->at, "There can be 100 rules at most");
	/* There is room for as many as there are parentheses. */
	if (strchr(reader->at, '(') == NULL)
		return governor_read_refuse(reader, reader->at, "Expected a pool with conditions in parentheses");
	if (!read_conditions(reader, list, &list->rules[list->count]))
		return false;
	list->count++;
	return true;
}

static bool
read_conditions(GovernorReader *reader, GovernorRuleList *list, GovernorRule *rule)
{
	const char *start = reader->at;
	const char *text;
	bool		of_client = false;
	bool		has_role = false;
	Size		length;

	if (list->count == 0)
		rule->first = 0;
	else
		rule->first = rule[-1].first + rule[-1].count;
	rule->count = 0;
	if (!governor_read_word(reader, rule->pool, sizeof(rule->pool)))
		return governor_read_refuse(reader, start, "Expected the name of a pool");
	if (!governor_read_char(reader, '('))
		return governor_read_refuse(reader, reader->at, "Expected an opening parenthesis");
	governor_read_space(reader);
	text = reader->at;
	do
	{
		GovernorCondition *condition = &list->conditions[rule->first + rule->count];

		/* There is room for as many as there are equals signs. */
		if (strchr(reader->at, '=') == NULL)
			return governor_read_refuse(reader, reader->at, "Expected a condition, such as role=app");
		if (!read_condition(reader, condition))
			return false;
		of_client = of_client || is_of_client(condition->kind);
		has_role = has_role || condition->kind == GOVERNOR_ON_ROLE;
		rule->count++;
	} while (governor_read_char(reader, ','));
	length = reader->at - text;
	if (!governor_read_char(reader, ')'))
		return governor_read_refuse(reader, reader->at, "Expected a comma or a closing parenthesis");
	if (of_client && !has_role)
		return governor_read_refuse(reader, start, "A rule by application, tag or query_id names the roles that may have the pool, or role=public");
	rule->text = governor_read_keep(reader, text, length);
	return true;
}

static bool
read_condition(GovernorReader *reader, GovernorCondition *condition)
{
	static const struct
	{
		const char *word;
		GovernorConditionKind kind;
		const char *expected;
	}			kinds[] = {
		{"role", GOVERNOR_ON_ROLE, "Expected the name of a role"},
		{"database", GOVERNOR_ON_DATABASE, "Expected the name of a database"},
		{"application", GOVERNOR_ON_APPLICATION, "Expected the name of an application"},
		{"tag", GOVERNOR_ON_TAG, "Expected the value of a tag"},
		{"query_id", GOVERNOR_ON_QUERY_ID, NULL},
	};
	const char *start;
	Size		length;
	const char *expected = NULL;
	bool		known = false;

	governor_read_space(reader);
	start = reader->at;
	length = strcspn(start, ". \t\r\n(),=\"");
	memset(condition, 0, sizeof(*condition));
	for (Size i = 0; i < lengthof(kinds) && !known; i++)
		if (strlen(kinds[i].word) == length && strncmp(start, kinds[i].word, length) == 0)
		{
			known = true;
			condition->kind = kinds[i].kind;
			expected = kinds[i].expected;
		}
	if (!known || (start[length] == '.') != (condition->kind == GOVERNOR_ON_TAG))
		return governor_read_refuse(reader, start, "Expected role, database, application, tag.KEY or query_id");
	reader->at += length;
	if (condition->kind == GOVERNOR_ON_TAG)
	{
		reader->at++;
		if (!read_text(reader, &condition->key, false, "Expected the key of a tag"))
			return false;
	}
	if (!governor_read_char(reader, '='))
		return governor_read_refuse(reader, reader->at, "Expected an equals sign");
	if (condition->kind == GOVERNOR_ON_QUERY_ID)
		return read_query_id(reader, &condition->query_id);
	if (!read_text(reader, &condition->value, condition->kind == GOVERNOR_ON_ROLE || condition->kind == GOVERNOR_ON_DATABASE,
				   expected))
		return false;
	/* No role has this name. */
	if (condition->kind == GOVERNOR_ON_ROLE && strcmp(condition->value, EVERYBODY) == 0)
		condition->value = NULL;
	return true;
}

static bool
read_text(GovernorReader *reader, const char **text, bool folded, const char *expected)
{
	if (!governor_read_name(reader, reader->store, reader->store_left, folded, expected))
		return false;
	*text = governor_read_keep(reader, reader->store, strlen(reader->store));
	return true;
}

/* As pg_stat_statements shows it: with a sign. */
static bool
read_query_id(GovernorReader *reader, int64 *query_id)
{
	char		word[NAMEDATALEN];
	char	   *end;
	const char *start;

	governor_read_space(reader);
	start = reader->at;
	errno = 0;
	if (!governor_read_word(reader, word, sizeof(word)))
		return governor_read_refuse(reader, start, "Expected a query identifier");
	*query_id = strtoll(word, &end, 10);
	if (errno != 0 || end == word || *end != '\0' || *query_id == 0)
		return governor_read_refuse(reader, start, "Expected a query identifier, as in pg_stat_statements");
	return true;
}

GovernorRuleVerdict
governor_rule_judge(const GovernorRule *rule, const GovernorFacts *facts)
{
	bool		of_client = has(rule, GOVERNOR_ON_APPLICATION) || has(rule, GOVERNOR_ON_TAG) ||
		has(rule, GOVERNOR_ON_QUERY_ID);

	if (!all_hold(rule, facts, is_no_role))
		return GOVERNOR_RULE_MISSES;
	/* A superuser may have every pool. */
	if (all_hold(rule, facts, is_role) || (of_client && facts->is_superuser))
		return GOVERNOR_RULE_HOLDS;
	return of_client ? GOVERNOR_RULE_DENIED : GOVERNOR_RULE_MISSES;
}

/* Whether it may hold for a later statement of the same session, by a tag or a query identifier. */
bool
governor_rule_waits_for(const GovernorRule *rule, const GovernorFacts *facts)
{
	return (has(rule, GOVERNOR_ON_TAG) || has(rule, GOVERNOR_ON_QUERY_ID)) && all_hold(rule, facts, is_of_session) &&
		(facts->is_superuser || all_hold(rule, facts, is_role));
}

/* Whether some rule has a condition of that kind. */
bool
governor_rules_have(GovernorConditionKind kind)
{
	for (int i = 0; governor_rules != NULL && i < governor_rules->count; i++)
		if (has(&governor_rules->rules[i], kind))
			return true;
	return false;
}

static bool
is_of_client(GovernorConditionKind kind)
{
	return kind == GOVERNOR_ON_APPLICATION || kind == GOVERNOR_ON_TAG || kind == GOVERNOR_ON_QUERY_ID;
}

static bool
is_role(GovernorConditionKind kind)
{
	return kind == GOVERNOR_ON_ROLE;
}

static bool
is_no_role(GovernorConditionKind kind)
{
	return kind != GOVERNOR_ON_ROLE;
}

/* What is the same for all statements of a session, but for its role. */
static bool
is_of_session(GovernorConditionKind kind)
{
	return kind == GOVERNOR_ON_DATABASE || kind == GOVERNOR_ON_APPLICATION;
}

static const GovernorCondition *
conditions_of(const GovernorRule *rule)
{
	return &governor_rules->conditions[rule->first];
}

static bool
has(const GovernorRule *rule, GovernorConditionKind kind)
{
	for (int i = 0; i < rule->count; i++)
		if (conditions_of(rule)[i].kind == kind)
			return true;
	return false;
}

static bool
all_hold(const GovernorRule *rule, const GovernorFacts *facts, bool (*counts) (GovernorConditionKind))
{
	for (int i = 0; i < rule->count; i++)
		if (counts(conditions_of(rule)[i].kind) && !any_holds(rule, &conditions_of(rule)[i], facts))
			return false;
	return true;
}

/* One of those of the same kind, and of the same tag. */
static bool
any_holds(const GovernorRule *rule, const GovernorCondition *like, const GovernorFacts *facts)
{
	const GovernorCondition *conditions = conditions_of(rule);

	for (int i = 0; i < rule->count; i++)
		if (conditions[i].kind == like->kind &&
			(like->kind != GOVERNOR_ON_TAG || strcmp(conditions[i].key, like->key) == 0) &&
			holds(&conditions[i], facts))
			return true;
	return false;
}

static bool
holds(const GovernorCondition *condition, const GovernorFacts *facts)
{
	const GovernorTag *tag;

	switch (condition->kind)
	{
		case GOVERNOR_ON_ROLE:
			return condition->value == NULL || strcmp(condition->value, facts->role) == 0;
		case GOVERNOR_ON_DATABASE:
			return strcmp(condition->value, facts->database) == 0;
		case GOVERNOR_ON_APPLICATION:
			return strcmp(condition->value, facts->application) == 0;
		case GOVERNOR_ON_TAG:
			tag = governor_tag_find(facts->tags, facts->tag_count, condition->key);
			return tag != NULL && governor_tag_part_is(tag->value, condition->value);
		case GOVERNOR_ON_QUERY_ID:
			return facts->query_id != 0 && condition->query_id == facts->query_id;
	}
	return false;
}
