/*
 * comment.c
 *		Comments around a statement, and the tags in them.
 *
 * Tags are those of SQLCommenter: a comment behind or in front of a statement that has nothing but pairs of
 * key='value' with commas between them.  Keys and values are URL-encoded, and a backslash stands before what has a
 * meaning there.  A comment with anything else in it has no tags at all.
 *
 * Everybody can send comments of any length and content, and no interrupt is served here: so only the last ones are
 * looked at, and only so far.  A text ends with a zero byte.  This is plain C, which needs neither a server nor its
 * headers, and allocates nothing.
 */
#include "comment.h"

#include <string.h>

#define SPACE " \t\r\n\f\v"

/* Not a byte. */
#define MALFORMED (-1)

static const char *begin_of_block(const char *text, const char *end);
static int	read_comment(GovernorSpan comment, GovernorTag *tags, int count, int room);
static bool read_tag(const char **at, const char *end, GovernorTag *tag);
static bool is_well_formed(GovernorSpan part);
static int	next_byte(const char **at, const char *end);
static int	hex_digit(char c);
static bool is_space(char c);
static void skip_space(const char **at, const char *end);

/* The first of the comments that end where the statement begins. */
const char *
governor_comments_begin(const char *text, const char *statement)
{
	const char *begin = statement;

	for (int comments = 0; comments < GOVERNOR_COMMENTS_MAX; comments++)
	{
		const char *end = begin;
		const char *line;
		const char *dashes;

		while (end > text && is_space(end[-1]))
			end--;
		for (line = end; line > text && line[-1] != '\n'; line--)
			;
		for (dashes = line; dashes < end && strncmp(dashes, "--", 2) != 0;)
			dashes = strncmp(dashes, "/*", 2) == 0 ? governor_comment_skip(dashes, end) : dashes + 1;
		if (dashes < end && memchr(end, '\n', begin - end) != NULL)
			begin = dashes;
		else if (end - text >= 4 && strncmp(end - 2, "*/", 2) == 0)
			begin = begin_of_block(text, end);
		else
			return begin;
	}
	return begin;
}

/* The end of a comment; comments between a slash and a star nest.  Returns the argument if there is none. */
const char *
governor_comment_skip(const char *at, const char *stop)
{
	int			depth = 0;

	if (strncmp(at, "--", 2) == 0)
	{
		while (at < stop && *at != '\r' && *at != '\n')
			at++;
		return at;
	}
	while (at < stop)
	{
		if (strncmp(at, "/*", 2) == 0)
		{
			depth++;
			at += 2;
		}
		else if (depth == 0)
			break;
		else if (strncmp(at, "*/", 2) == 0)
		{
			at += 2;
			if (--depth == 0)
				break;
		}
		else
			at++;
	}
	return at;
}

/*
 * The tags of a statement, those behind it before those in front of it; returns how many there are, of which no more than
 * "room" are looked at.
 */
int
governor_comment_tags(const char *text, GovernorSpan statement, GovernorTag *tags, int room)
{
	const char *lowest = statement.end - statement.begin > GOVERNOR_COMMENT_BYTES ?
		statement.end - GOVERNOR_COMMENT_BYTES : statement.begin;
	const char *end = statement.end;
	const char *at;
	const char *stop;
	int			count = 0;

	for (int comments = 0; comments < GOVERNOR_COMMENTS_MAX; comments++)
	{
		const char *begin;

		while (end > lowest && is_space(end[-1]))
			end--;
		if (end - lowest < 4 || strncmp(end - 2, "*/", 2) != 0)
			break;
		begin = begin_of_block(lowest, end);
		if (strncmp(begin, "/*", 2) != 0)
			break;
		count = read_comment((GovernorSpan) {begin, end}, tags, count, room);
		end = begin;
	}

	at = governor_comments_begin(statement.begin - text > GOVERNOR_COMMENT_BYTES ?
								 statement.begin - GOVERNOR_COMMENT_BYTES : text, statement.begin);
	stop = end - statement.begin > GOVERNOR_COMMENT_BYTES ? statement.begin + GOVERNOR_COMMENT_BYTES : end;
	while (at < stop)
	{
		const char *comment;

		skip_space(&at, stop);
		comment = at;
		at = governor_comment_skip(at, stop);
		if (at == comment)
			break;
		if (*comment == '/')
			count = read_comment((GovernorSpan) {comment, at}, tags, count, room);
	}
	return count;
}

/* The first one with that key; NULL if there is none. */
const GovernorTag *
governor_tag_find(const GovernorTag *tags, int count, const char *key)
{
	for (int i = 0; i < count; i++)
		if (governor_tag_part_is(tags[i].key, key))
			return &tags[i];
	return NULL;
}

/* Whether it is this, decoded. */
bool
governor_tag_part_is(GovernorSpan part, const char *plain)
{
	const char *at = part.begin;

	for (; at < part.end; plain++)
	{
		int			byte = next_byte(&at, part.end);

		/* A zero byte is in no plain text. */
		if (byte == MALFORMED || byte == 0 || byte != (unsigned char) *plain)
			return false;
	}
	return *plain == '\0';
}

/* Backwards from the end of a comment that may have others in it; not before the text. */
static const char *
begin_of_block(const char *text, const char *end)
{
	const char *at = end - 2;

	for (int depth = 1; depth > 0 && at > text;)
	{
		at--;
		if (strncmp(at, "/*", 2) == 0)
			depth--;
		else if (at > text && strncmp(at - 1, "*/", 2) == 0)
		{
			depth++;
			at--;
		}
	}
	return at;
}

/* Adds its tags, if it has nothing else; returns how many there are then. */
static int
read_comment(GovernorSpan comment, GovernorTag *tags, int count, int room)
{
	const char *at = comment.begin + 2;
	const char *end = comment.end - 2;
	int			found = count;

	/* One that is cut off, or has another one in it. */
	if (end < at || strncmp(end, "*/", 2) != 0)
		return count;
	for (const char *inner = at; inner + 1 < end; inner++)
		if (strncmp(inner, "/*", 2) == 0 || strncmp(inner, "*/", 2) == 0)
			return count;
	for (;;)
	{
		GovernorTag tag;

		if (!read_tag(&at, end, &tag))
			return count;
		if (found < room)
			tags[found++] = tag;
		if (at == end)
			return found;
		if (*at != ',')
			return count;
		at++;
	}
}

/* One pair, with the white space around it. */
static bool
read_tag(const char **at, const char *end, GovernorTag *tag)
{
	skip_space(at, end);
	tag->key.begin = *at;
	while (*at < end && **at != '=' && !is_space(**at))
	{
		if (**at == '\'' || **at == ',')
			return false;
		*at += **at == '\\' && *at + 1 < end ? 2 : 1;
	}
	tag->key.end = *at;
	skip_space(at, end);
	if (tag->key.end == tag->key.begin || *at == end || **at != '=')
		return false;
	++*at;
	skip_space(at, end);
	if (*at == end || **at != '\'')
		return false;
	tag->value.begin = ++*at;
	while (*at < end && **at != '\'')
		*at += **at == '\\' && *at + 1 < end ? 2 : 1;
	tag->value.end = *at;
	if (*at == end)
		return false;
	++*at;
	skip_space(at, end);
	return is_well_formed(tag->key) && is_well_formed(tag->value);
}

static bool
is_well_formed(GovernorSpan part)
{
	for (const char *at = part.begin; at < part.end;)
		if (next_byte(&at, part.end) == MALFORMED)
			return false;
	return true;
}

/* Decodes one byte; there is one. */
static int
next_byte(const char **at, const char *end)
{
	char		c = *(*at)++;

	if (c == '\\')
	{
		if (*at == end)
			return MALFORMED;
		c = *(*at)++;
	}
	if (c == '%')
	{
		int			high;
		int			low;

		if (end - *at < 2)
			return MALFORMED;
		high = hex_digit((*at)[0]);
		low = hex_digit((*at)[1]);
		*at += 2;
		return high == MALFORMED || low == MALFORMED ? MALFORMED : high << 4 | low;
	}
	return (unsigned char) c;
}

static int
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return MALFORMED;
}

static bool
is_space(char c)
{
	return c != '\0' && strchr(SPACE, c) != NULL;
}

static void
skip_space(const char **at, const char *end)
{
	while (*at < end && is_space(**at))
		++*at;
}
