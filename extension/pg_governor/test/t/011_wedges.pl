# With default settings nobody waits without an end, whatever those do who have a slot.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib $FindBin::RealBin;
use GovernorTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time);

# the defaults, but for the limit; and no timeout lets anybody in
my $node = governed_node('wedges', <<'EOC');
pg_governor.transaction_limit = 2
pg_governor.reserved_slots = 3
pg_governor.queue_timeout = 0
max_connections = 80
EOC
$node->safe_psql('postgres', 'CREATE ROLE plain LOGIN; CREATE TABLE a (n int); CREATE TABLE b (n int);
	INSERT INTO a SELECT generate_series(1, 10); GRANT ALL ON a, b TO plain');
my $plain = $node->connstr('postgres') . ' user=plain';

# A transaction of somebody else comes through.
sub flows
{
	my ($name, $sql) = @_;
	$sql ||= 'SELECT 1';
	my $began = time;
	$node->safe_psql('postgres', "BEGIN;\n$sql;\nCOMMIT", connstr => $plain,
		timeout => $PostgreSQL::Test::Utils::timeout_default);
	pass(sprintf('%s: through after %.2f s', $name, time - $began));
}

# three times as many idle holders as slots, and as many again
my @idle = map { holder($node, user => 'plain') } 1 .. 14;
flows('idle in transaction');
like(slurp_file($node->logfile), qr/sessions with a slot of class "transaction" in pool "default" are idle in their transactions.*Idle processes: .*\b$idle[0]{pid}\b/s,
	'the log names those that are idle');

# a superuser behind reserved slots that are idle
my @super = map { holder($node) } 1 .. 3;
my $one_more = holder($node);
pass('a superuser behind idle superusers');
$one_more->leave;
$_->leave for @super;

# they are ended while others queue, if that is wanted
set_all($node, idle_holder_timeout => '300ms', discount_time => '0', stall_time => '0');
my $waiter = session($node, user => 'plain');
$waiter->ask('BEGIN');
ok($node->poll_query_until('postgres', "SELECT count(*) < 14 FROM pg_stat_activity
	WHERE usename = 'plain' AND state = 'idle in transaction'"), 'idle holders are ended');
like(slurp_file($node->logfile), qr/terminating process \d+, which has a slot and has been idle/, 'which is logged');
$waiter->ask('COMMIT');
$_->vanish for @idle;
$waiter->leave;
set_all($node, idle_holder_timeout => '0', discount_time => '100ms', stall_time => '500ms');

# an ALTER TABLE behind a report, and behind it transactions on that table: others go on
my $report = session($node);
$report->ask('SET pg_governor.gate_begin = off; BEGIN; SELECT count(*) FROM a');
my $alter = session($node);
$alter->tell('ALTER TABLE a ADD COLUMN IF NOT EXISTS m int');
$node->poll_query_until('postgres', "SELECT count(*) > 0 FROM pg_locks WHERE NOT granted") or die;
my @stuck = map { session($node, user => 'plain') } 1 .. 12;
$_->tell("BEGIN;\nSELECT count(*) FROM a;\nCOMMIT") for @stuck;
flows('another table', 'SELECT count(*) FROM b');
$report->ask('COMMIT');
$_->settle for ($alter, @stuck);
$_->leave for ($report, $alter, @stuck);
nothing_left($node, 'ALTER TABLE');

# postgres_fdw to the same server over TCP, where nothing tells that the client is a session
{
	my $tcp = PostgreSQL::Test::Cluster::get_free_port();
	$node->append_conf('postgresql.conf', "listen_addresses = '127.0.0.1'\nport = $tcp");
	$node->stop;
	$node->{_port} = $tcp;
	$node->start;
	$plain = $node->connstr('postgres') . ' user=plain';
	$node->append_conf('pg_hba.conf', 'host all all 127.0.0.1/32 trust');
	$node->reload;
	$node->safe_psql('postgres', <<"EOC");
CREATE EXTENSION postgres_fdw;
CREATE SERVER self FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '127.0.0.1', port '$tcp', dbname 'postgres');
CREATE USER MAPPING FOR plain SERVER self OPTIONS (user 'plain', password 'x', password_required 'false');
CREATE FOREIGN TABLE far_b (n int) SERVER self OPTIONS (table_name 'b');
GRANT ALL ON far_b TO plain;
EOC
	my $began = time;
	my @far = map { session($node, user => 'plain') } 1 .. 16;
	$_->tell("BEGIN;\nSELECT count(*) FROM far_b;\nCOMMIT") for @far;
	$_->settle for @far;
	unlike(join('', map { $_->errors } @far), qr/ERROR/, 'fdw: no errors');
	pass(sprintf('16 sessions that connect to their own server: %.2f s', time - $began));
	$_->leave for @far;

	# with one slot and nothing that ends a wait: who has it waits for a session that would queue for it
	$node->safe_psql('postgres', 'CREATE EXTENSION dblink');
	set_all($node, strict => 'on', transaction_limit => 1, reserved_slots => 0, discount_time => 0, stall_time => 0);
	my $dblink = "SELECT * FROM dblink('host=127.0.0.1 port=$tcp dbname=postgres', 'BEGIN; SELECT 1') AS t(n int)";
	for my $way ([ 'postgres_fdw', 'SELECT count(*) FROM far_b' ], [ 'dblink', $dblink ])
	{
		my ($name, $sql) = @$way;
		my @far = map { session($node, user => $name eq 'dblink' ? undef : 'plain') } 1 .. 4;
		$_->tell("BEGIN;\n$sql;\nCOMMIT") for @far;
		$_->settle for @far;
		unlike(join('', map { $_->errors } @far), qr/ERROR/, "strict, one slot: $name to the own server over TCP");
		$_->leave for @far;
	}
	# in a pause, too, which waits for who has it
	my $held = holder($node, user => 'plain');
	my $pauser = session($node);
	$pauser->tell('SELECT pg_governor_pause()');
	$node->poll_query_until('postgres', 'SELECT bool_and(paused) FROM pg_governor_pools') or die;
	$held->ask('SELECT count(*) FROM far_b');
	$held->ask('COMMIT');
	$pauser->settle;
	pass('a pause does not hold what the work it waits for needs');
	$node->safe_psql('postgres', 'SELECT pg_governor_resume()');
	$_->leave for ($held, $pauser);
	set_all($node, strict => 'off', transaction_limit => 2, reserved_slots => 3, discount_time => '100ms', stall_time => '500ms');
}
nothing_left($node, 'loopback by TCP');

# after queue_timeout "run" runs, also beyond the hard maximum of sessions that work
set_all($node, transaction_limit => 1, hard_max_factor => 1, queue_timeout => '1s');
my @busy = map { session($node, user => 'plain') } 1 .. 3;
$_->tell("BEGIN;\nDO \$\$BEGIN LOOP NULL; END LOOP; END\$\$") for @busy;
flows('behind three that work');
$_->cancel($node) for @busy;
nothing_left($node, 'run');

# the driver that draws clients from all kinds, for a short time
SKIP:
{
	skip 'the wedge driver is not built (it needs libpq)', 1 unless -x "$FindBin::RealBin/../load/wedge";
	$node->append_conf('postgresql.conf', "max_connections = 120\nmax_prepared_transactions = 20\nlisten_addresses = '127.0.0.1'");
	set_all($node, transaction_limit => 4, query_limit => 4, autocommit_limit => 4, hard_max_factor => 3, queue_timeout => '10s');
	$node->restart;
	# Who waits for a CPU may be later than the timeout says; who waits for ever is not only late.
	command_ok([ "$FindBin::RealBin/../load/wedge", $node->connstr('postgres'), 30, 25, $$, 60 ],
		'30 clients of 29 kinds for 25 s: no wait without an end');
	nothing_left($node, 'driver');
}

$node->stop;
done_testing();
