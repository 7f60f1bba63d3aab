/*
 * hint.c
 *		Hint comments in front of a statement.  Like gate.c, it needs no server.
 *
 * A hint is a word in a comment that begins with a plus sign.  There may be several
 * comments, with and without hints, of this and of other extensions.
 */
#include "hint.h"

static const char *skip_comment(const char *at);
static bool has_word(const char *from, const char *to, const char *word);
static bool is_part_of_word(char c);

bool
governor_hint_is_there(const char *statement, const char *hint)
{
	const char *at = statement;

	for (;;)
	{
		const char *comment;

		at += strspn(at, " \t\r\n\f\v;");
		comment = at;
		at = skip_comment(at);
		if (at == comment)
			return false;
		if (strncmp(comment, "/*+", 3) == 0 && has_word(comment + 3, at, hint))
			return true;
	}
}

/* Comments between a slash and a star nest; returns the argument if there is none. */
static const char *
skip_comment(const char *at)
{
	int			depth = 0;

	if (strncmp(at, "--", 2) == 0)
		return at + strcspn(at, "\r\n");
	while (*at != '\0')
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

static bool
has_word(const char *from, const char *to, const char *word)
{
	Size		length = strlen(word);

	for (const char *at = from; at + length <= to; at++)
		if (strncmp(at, word, length) == 0 && (at == from || !is_part_of_word(at[-1])) &&
			!is_part_of_word(at[length]))
			return true;
	return false;
}

static bool
is_part_of_word(char c)
{
	return c == '_' || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}
