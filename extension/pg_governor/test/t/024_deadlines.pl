# Who cannot be done in time, by the measured wait and the measured service, is refused at once, and told when to try again.
use strict;
use warnings FATAL => 'all';
use FindBin;
use lib $FindBin::RealBin;
use GovernorTest;
use PostgreSQL::Test::Utils;
use Test::More;
use Time::HiRes qw(time usleep);

my $node = governed_node('deadlines', <<'EOC');
pg_governor.transaction_limit = 1
pg_governor.query_limit = 1
pg_governor.discount_time = 0
pg_governor.stall_time = 0
pg_governor.long_time = 0
pg_governor.queue_timeout = 0
pg_governor.policy = fifo
pg_governor.refuse_early = on
EOC
my $status = 'FROM pg_governor_status WHERE pool = \'default\' AND class =';

# A load that takes so many seconds each in the only slot.
sub load
{
	my ($clients, $sql) = @_;
	my $script = $node->basedir . '/load.sql';
	unlink $script;
	append_to_file($script, $sql);
	my ($out, $err);
	return IPC::Run::start([ 'pgbench', '-n', '-c', $clients, '-T', 600, '-f', $script, $node->connstr('postgres') ],
		'>', \$out, '2>', \$err);
}

# Says the same until it is refused: now and then the queue is short, when the load's own clients wait for a CPU.
sub refused
{
	my ($session, $sql) = @_;
	my $latest = time + $PostgreSQL::Test::Utils::timeout_default;
	while (time < $latest)
	{
		$session->ask($sql);
		my $said = $session->errors;
		return $said if $said =~ /53G02/;
	}
	return 'never refused';
}

# a block: statement_timeout is about BEGIN, and so about the wait alone
my $load = load(8, "BEGIN;\nSELECT pg_sleep(0.1);\nCOMMIT;\n");
$node->poll_query_until('postgres', "SELECT wait_ms BETWEEN 500 AND 20000 AND service_ms BETWEEN 90 AND 5000 $status 'transaction'") or die;
my $hasty = session($node);
$hasty->ask("\\set VERBOSITY verbose\nSET statement_timeout = '300ms'");
my $said = refused($hasty, "BEGIN;\nSELECT 1;\nROLLBACK");
my ($needed, $again) = $said =~ /It would take about (\d+) ms, and the timeout is \d+ ms\. retry_after_ms=(\d+)/;
ok($again, "a block that cannot begin in time is refused: $said");
cmp_ok($again, '<', $needed // 0, 'it is told to come again before the queue as it is has gone');
unlike($said, qr/statement timeout/, 'it is refused and does not run into its timeout');
$hasty->ask("SET statement_timeout = '30min'");
$hasty->ask("BEGIN;\nSELECT 1;\nROLLBACK");
is($hasty->errors, '', 'one with time enough is not refused');
cmp_ok($node->safe_psql('postgres', "SELECT refused_early $status 'transaction'"), '>=', 1, 'it is counted');
is($node->safe_psql('postgres', "SELECT refused_early $status 'query'"), '0', 'at its gate');
is($node->safe_psql('postgres', "SELECT s.refused_early = p.refused FROM pg_governor_status s JOIN pg_governor_pools p USING (pool, class)
	WHERE class = 'transaction'"), 't', 'and among all that are refused');

# in mode observe nobody is, and who would be is counted
set_all($node, mode => 'observe');
$node->poll_query_until('postgres', "SELECT wait_ms > 2 $status 'transaction'") or die;
my $refused = $node->safe_psql('postgres', "SELECT refused_early $status 'transaction'");
$hasty->ask("SET pg_governor.user_queue_timeout = '1ms'");
my $counted = 0;
for (1 .. 20 * $PostgreSQL::Test::Utils::timeout_default)
{
	$hasty->ask("BEGIN;\nSELECT 1;\nROLLBACK");
	last if $counted = $node->safe_psql('postgres', "SELECT refused_early > $refused $status 'transaction'") eq 't';
	usleep(50_000);
}
ok($counted, 'mode observe counts who would be refused');
is($hasty->errors, '', 'and refuses nobody');
$hasty->ask('RESET pg_governor.user_queue_timeout');
set_all($node, mode => 'enforce');
$load->kill_kill;
$node->poll_query_until('postgres', 'SELECT sum(taken) FROM pg_governor_pools', '0') or die;

# a statement outside a block: its work is under the same timeout
my $watch = session($node);
set_all($node, gate_autocommit => 'on');
$watch->ask('SET pg_governor.gate_autocommit = off');
$load = load(3, "SELECT pg_sleep(1);\n");
my $forecast = '';
for (1 .. 20 * $PostgreSQL::Test::Utils::timeout_default)
{
	$forecast = $watch->ask("SELECT wait_ms::int || ' ' || service_ms::int $status 'query'
		AND wait_ms BETWEEN 2400 AND 8000 AND service_ms BETWEEN 800 AND 4000");
	last if $forecast;
	usleep(50_000);
}
ok($forecast, 'the wait and the service of a slow gate are measured');
my ($wait_ms, $service_ms) = $forecast =~ /(\d+) (\d+)/;
$hasty->ask("SET statement_timeout = '" . int($wait_ms + $service_ms / 2) . "ms'");
$said = refused($hasty, 'SELECT count(*) FROM generate_series(1, 2)');
like($said, qr/It would take about \d+ ms with its work, and the timeout is \d+ ms\. retry_after_ms=\d+/,
	'a statement that would get a slot in time and not be done is refused');
set_all($node, refuse_early => 'off');
$hasty->ask('SELECT count(*) FROM generate_series(1, 2)');
unlike($hasty->errors, qr/53G02/, 'not without refuse_early');
$load->kill_kill;
set_all($node, gate_autocommit => 'off');
nothing_left($node, 'deadlines');
$node->stop;
done_testing();
