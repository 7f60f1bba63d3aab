# BEGIN never fails into statements that commit one by one.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib $FindBin::RealBin;
use GovernorTest;
use PostgreSQL::Test::Utils;
use Test::More;

my $node = governed_node('doom', <<'EOC');
pg_governor.transaction_limit = 1
pg_governor.discount_time = 0
pg_governor.stall_time = 0
pg_governor.long_time = 0
pg_governor.queue_timeout = 0
EOC
$node->safe_psql('postgres', 'CREATE TABLE accounts (id int PRIMARY KEY, balance int);
	INSERT INTO accounts VALUES (1, 0), (2, 0)');
my $holder = holder($node);
my $move = "UPDATE accounts SET balance = balance - 10 WHERE id = 1;\nUPDATE accounts SET balance = balance + 10 WHERE id = 2";

sub balances { return $node->safe_psql('postgres', 'SELECT string_agg(balance::text, \',\' ORDER BY id) FROM accounts') }

# the ways in which a wait ends in an error; psql goes on after errors
my @ways = (
	[ 'statement_timeout', "SET statement_timeout = '50ms'", qr/57014.*statement timeout/s ],
	[ 'user_queue_timeout', "SET pg_governor.user_queue_timeout = '50ms'", qr/53G01.*queue timeout/s ],
	[ 'cancel', 'SELECT 1', qr/57014.*user request/s,
		sub { $node->safe_psql('postgres', "SELECT pg_cancel_backend($_[0]{pid})") } ],
	[ 'evict', 'SELECT 1', qr/53G03.*removed from the queue/s,
		sub { $node->safe_psql('postgres', "SELECT pg_governor_evict($_[0]{pid})") } ]);
for my $way (@ways)
{
	my ($name, $before, $error, $do) = @$way;
	my $client = session($node);
	$client->ask("\\set VERBOSITY verbose\n$before");
	$client->tell('BEGIN');
	if ($do)
	{
		wait_for_queue($node, 1);
		$do->($client);
	}
	$client->settle;
	like($client->errors, qr/WARNING:  \S+  ?this transaction will fail/, "$name: BEGIN succeeds, with a warning");
	$client->ask("SET statement_timeout = 0;\n$move;\nCOMMIT");
	like($client->errors, qr/ERROR:.*$error/, "$name: the first statement raises the error");
	is(balances(), '0,0', "$name: nothing of it is committed");
	is($client->ask('SELECT 1'), '1', "$name: the session is fine afterwards");
	is(gate_counts($node, 'taken, queued'), '1|0', "$name: no slot, no place in the queue");
	$client->leave;
}

# an empty block ends as it always does; the next transaction is a new one
my $client = session($node);
$client->ask("SET pg_governor.user_queue_timeout = '20ms'");
$client->ask("BEGIN;\nCOMMIT;\nBEGIN;\nROLLBACK");
unlike($client->errors, qr/ERROR/, 'an empty block does not fail');
$client->ask('BEGIN');
$client->errors;
$client->ask('SAVEPOINT a');
like($client->errors, qr/ERROR:  canceling statement due to queue timeout/, 'a savepoint does');
$client->ask('ROLLBACK');
for my $statement ('SET LOCAL work_mem = 64', 'SHOW work_mem', 'PREPARE p AS SELECT 1', 'LISTEN a',
	"PREPARE TRANSACTION 'x'", 'BEGIN', 'EXPLAIN SELECT 1', 'TABLE accounts', 'CREATE TABLE t ()')
{
	$client->ask('BEGIN');
	$client->errors;
	$client->ask($statement);
	like($client->errors, qr/ERROR:  canceling statement due to queue timeout/, "so does $statement");
	$client->ask('ROLLBACK');
}
# the plan is there already
$client->ask('SET pg_governor.user_queue_timeout = 0; PREPARE kept AS UPDATE accounts SET balance = 1 WHERE id = 1');
$client->ask("SET plan_cache_mode = force_generic_plan; SET pg_governor.user_queue_timeout = '20ms'");
$client->ask("BEGIN;\nEXECUTE kept;\nCOMMIT");
is(balances(), '0,0', 'so does a prepared statement');

# a function that is called by the fast path, which passes no hook, catches the error, and tries again
SKIP:
{
	skip 'the driver of the fast path is not built (it needs libpq)', 1 unless -x "$FindBin::RealBin/../load/fast";
	$node->safe_psql('postgres', <<'EOS');
CREATE FUNCTION catches() RETURNS int LANGUAGE plpgsql AS $$
BEGIN
	BEGIN
		UPDATE accounts SET balance = balance WHERE id = 1;
		RETURN 1;
	EXCEPTION WHEN OTHERS OR query_canceled THEN NULL;
	END;
	BEGIN
		UPDATE accounts SET balance = balance WHERE id = 1;
		RETURN 1;
	EXCEPTION WHEN OTHERS OR query_canceled THEN RETURN 0;
	END;
END$$
EOS
	command_ok([ "$FindBin::RealBin/../load/fast", $node->connstr('postgres'), 40, 'catches()' ],
		'40 blocks that catch the error by the fast path: none works without a slot');
}

# who closes its connection in the queue is gone, and an administrator's command too
my $closed = session($node);
$closed->tell('BEGIN');
wait_for_queue($node, 1);
$node->safe_psql('postgres', "SELECT pg_terminate_backend($closed->{pid})");
wait_for_queue($node, 0);
is(balances(), '0,0', 'a terminated session has done nothing');

$holder->ask('COMMIT');
$client->ask("$move");
is(balances(), '-10,10', 'the same session works when there is a slot');
nothing_left($node, 'doom');

# many BEGINs under cancels and timeouts, psql's way and a driver's
SKIP:
{
	skip 'the half-transaction driver is not built (it needs libpq)', 1 unless -x "$FindBin::RealBin/../load/half";
	set_all($node, queue_timeout => '5ms', on_timeout => 'error', max_queue => 6, transaction_limit => 2);
	command_ok([ "$FindBin::RealBin/../load/half", $node->connstr('postgres'), 20000, 12 ],
		'20,000 BEGINs under cancels and timeouts: no half transaction');
	nothing_left($node, 'half transactions');
}

$node->stop;
done_testing();
