// Load on a Kubernetes API over HTTPS, the same for every server that speaks it. See scripts/bench.d/load.py.
//
//   tessera_load mixed --port P --ca F --certificate F --key F [--requests 20000] [--connections 16] [--seed 1]
//   tessera_load fill  ... --requests 100000      creates pods
//   tessera_load pages ... [--limit 500]          lists all pods in pages while others are created
//   tessera_load watch ... --connections 1000     opens a watch each, says so, and holds them until its input ends
//   tessera_load schedule ... --scheduler NAME    pods for a scheduler (load_schedule.h): --nodes, --pods, --rate, --gang,
//                                                 --gang-api, --limit-s
//   tessera_load queues ...                       jobs for queues (load_queues.h): --cohorts, --queues, --percent, --limit-s
//
// Prints one line of JSON.

#include <fmt/core.h>
#include <poll.h>
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>

#include "json/parse.h"
#include "load_loop.h"
#include "load_queues.h"
#include "load_schedule.h"

namespace tessera::load {
namespace {

struct Options {
  std::string mode;
  Target target;
  uint64_t requests = 20'000;
  int connections = 16;
  uint64_t seed = 1;
  uint64_t limit = 500;
  Schedule schedule;
  QueueWork queues;
};

void read_queue_option(QueueWork& queues, std::string_view name, const char* value) {
  const auto number = std::strtoull(value, nullptr, 10);
  if (name == "--cohorts") queues.cohorts = number;
  if (name == "--queues") queues.queues = number;
  if (name == "--percent") queues.percent = number;
  if (name == "--connections") queues.connections = std::max(1, static_cast<int>(number));
  if (name == "--limit-s") queues.limit_s = std::strtod(value, nullptr);
}

void read_schedule_option(Schedule& schedule, std::string_view name, const char* value) {
  if (name == "--nodes") schedule.nodes = std::strtoull(value, nullptr, 10);
  if (name == "--pods") schedule.pods = std::strtoull(value, nullptr, 10);
  if (name == "--rate") schedule.rate = std::strtod(value, nullptr);
  if (name == "--gang") schedule.gang = std::max(1, std::atoi(value));
  if (name == "--gang-api") schedule.gang_api = value;
  if (name == "--scheduler") schedule.scheduler = value;
  if (name == "--limit-s") schedule.limit_s = std::strtod(value, nullptr);
}

Options read_options(int argc, char** argv) {
  Options options;
  if (argc > 1) options.mode = argv[1];
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    const char* value = argv[i + 1];
    const auto number = std::strtoull(value, nullptr, 10);
    if (name == "--port") options.target.port = static_cast<uint16_t>(number);
    if (name == "--ca") options.target.ca_file = value;
    if (name == "--certificate") options.target.certificate_file = value;
    if (name == "--key") options.target.key_file = value;
    if (name == "--requests") options.requests = number;
    read_schedule_option(options.schedule, name, value);
    read_queue_option(options.queues, name, value);
    if (name == "--connections") options.connections = static_cast<int>(number);
    if (name == "--seed") options.seed = number;
    if (name == "--limit") options.limit = number;
  }
  return options;
}

// A request whose answer is waited for.
int ask_now(Connection& connection, std::string_view method, const std::string& target,
            std::string_view body = {}) {
  auto outcome = connection.send(method, target, body.empty() ? "" : "application/json", body);
  while (outcome == Connection::Outcome::kPending) {
    pollfd ready{connection.fd(), POLLIN, 0};
    ::poll(&ready, 1, -1);
    outcome = connection.advance();
  }
  if (outcome == Connection::Outcome::kFailed) {
    fmt::print(stderr, "tessera_load: {} {}: {}\n", method, target, connection.why());
    std::exit(1);
  }
  return connection.status();
}

void make(Connection& connection, const std::string& target, const std::string& body) {
  const int status = ask_now(connection, "POST", target, body);
  if (status == 201 || status == 409) return;
  fmt::print(stderr, "tessera_load: POST {}: {} {}\n", target, status, connection.body());
  std::exit(1);
}

// The namespaces with their service accounts, which a controller may make at the same time.
void make_namespaces(SSL_CTX* context, const Target& target) {
  Connection connection(context, target);
  connection.connect();
  for (int i = 0; i < kNamespaces; ++i) {
    const std::string name = namespace_name(i);
    make(connection, "/api/v1/namespaces",
         fmt::format(R"({{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{}"}}}})",
                     name));
    make(connection, fmt::format("/api/v1/namespaces/{}/serviceaccounts", name),
         R"({"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"default"}})");
  }
}

// Pods to ask for, and every path taken once before it is measured.
void warm_up(Loop& loop, Plan& plan) {
  const auto note = [&](const Ask& ask, const Connection& connection) {
    if (connection.status() == 201) plan.acknowledge(ask);
  };
  loop.run(1000, [&] { return plan.create(); }, note);
  loop.run(1000, [&] { return plan.next(); }, note);
}

int run_mixed(const Options& options, SSL_CTX* context) {
  make_namespaces(context, options.target);
  Loop loop(context, options.target, options.connections);
  Plan plan(options.seed);
  warm_up(loop, plan);
  fmt::print("warm\n");
  std::fflush(stdout);
  std::getchar();
  const Outcome outcome = loop.run(
      options.requests, [&] { return plan.next(); },
      [&](const Ask& ask, const Connection& connection) {
        if (connection.status() == 201) plan.acknowledge(ask);
      });
  fmt::print("{}\n", as_json(outcome));
  return 0;
}

int run_fill(const Options& options, SSL_CTX* context) {
  make_namespaces(context, options.target);
  Loop loop(context, options.target, options.connections);
  Plan plan(options.seed);
  const Outcome outcome = loop.run(
      options.requests, [&] { return plan.create(); }, [](const Ask&, const Connection&) {});
  fmt::print("{}\n", as_json(outcome));
  return 0;
}

// What one walk through all pages saw.
struct Walk {
  uint64_t limit = 0;
  std::string next;
  std::set<std::string> names;
  uint64_t twice = 0;
  uint64_t pages = 0;
  bool done = false;

  Ask ask() const {
    std::string target = fmt::format("/api/v1/pods?limit={}", limit);
    if (!next.empty()) target += "&continue=" + next;
    return {Op::kList, "GET", target};
  }
  void take(const std::string& body) {
    const auto page = json::parse(body);
    if (!page) return;
    ++pages;
    for (const json::Value& item : (*page)["items"].items()) {
      const json::Value& meta = item["metadata"];
      if (!names.insert(meta["namespace"].str() + "/" + meta["name"].str()).second) ++twice;
    }
    next = page->get("metadata", "continue").str();
    done = next.empty();
  }
};

// One connection walks; the others create pods until it is through.
int run_pages(const Options& options, SSL_CTX* context) {
  make_namespaces(context, options.target);
  Loop loop(context, options.target, options.connections);
  Plan plan(options.seed);
  Walk walk;
  walk.limit = options.limit;
  bool walking = false;
  uint64_t asked = 0;
  Outcome all;
  while (!walk.done && all.errors == 0) {
    Outcome some = loop.run(
        static_cast<uint64_t>(options.connections) * 4,
        [&] {
          ++asked;
          if (walking || walk.done) return plan.create();
          walking = true;
          return walk.ask();
        },
        [&](const Ask& ask, const Connection& connection) {
          if (ask.op != Op::kList) return;
          walking = false;
          walk.take(connection.body());
        });
    for (size_t op = 0; op < kOps; ++op) {
      all.micros[op].insert(all.micros[op].end(), some.micros[op].begin(), some.micros[op].end());
    }
    all.errors += some.errors;
    all.faults.merge(some.faults);
    all.seconds += some.seconds;
  }
  fmt::print(R"({{"pages":{},"seen":{},"twice":{},"load":{}}})"
             "\n",
             walk.pages, walk.names.size(), walk.twice, as_json(all));
  return 0;
}

int run_watch(const Options& options, SSL_CTX* context) {
  make_namespaces(context, options.target);
  rlimit files{8192, 8192};
  setrlimit(RLIMIT_NOFILE, &files);
  Connection first(context, options.target);
  first.connect();
  ask_now(first, "GET", "/api/v1/namespaces/load-0/pods?limit=1");
  const auto list = json::parse(first.body());
  const std::string version = list ? list->get("metadata", "resourceVersion").str() : "0";
  std::vector<std::unique_ptr<Connection>> watches;
  for (int i = 0; i < options.connections; ++i) {
    watches.push_back(std::make_unique<Connection>(context, options.target));
    watches.back()->connect();
    const int status =
        ask_now(*watches.back(), "GET",
                fmt::format("/api/v1/namespaces/{}/pods?watch=true&allowWatchBookmarks=true&"
                            "timeoutSeconds=3600&resourceVersion={}",
                            namespace_name(i % kNamespaces), version));
    if (status != 200) {
      fmt::print(stderr, "tessera_load: watch {}: {} {}\n", i, status, watches.back()->body());
      return 1;
    }
  }
  fmt::print(R"({{"watches":{}}})"
             "\n",
             watches.size());
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  for (const auto& watch : watches) {
    if (watch->drain() == Connection::Outcome::kFailed) {
      fmt::print(stderr, "tessera_load: a watch did not last: {}\n", watch->why());
      return 1;
    }
  }
  return 0;
}

}  // namespace
}  // namespace tessera::load

int main(int argc, char** argv) {
  using namespace tessera::load;
  const Options options = read_options(argc, argv);
  SSL_CTX* context = make_context(options.target);
  int status = 2;
  if (options.mode == "mixed") status = run_mixed(options, context);
  if (options.mode == "fill") status = run_fill(options, context);
  if (options.mode == "pages") status = run_pages(options, context);
  if (options.mode == "schedule") {
    status = run_schedule(options.schedule, context, options.target);
  }
  if (options.mode == "queues") status = run_queues(options.queues, context, options.target);
  if (options.mode == "watch") status = run_watch(options, context);
  if (status == 2)
    fmt::print(stderr, "usage: tessera_load mixed|fill|pages|watch|schedule|queues --port P ...\n");
  SSL_CTX_free(context);
  return status;
}
