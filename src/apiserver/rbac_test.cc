#include "apiserver/rbac.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "apiserver/rbac_defaults.h"
#include "base/random.h"
#include "json/parse.h"

namespace tessera::apiserver {
namespace {

using json::Value;

Value parsed(std::string_view text) {
  auto value = json::parse(text);
  EXPECT_TRUE(value) << text;
  return value.value_or(Value());
}

Attributes on(std::string_view verb, std::string_view group, std::string_view resource,
              std::string_view ns = {}, std::string_view name = {}, std::string_view sub = {}) {
  Attributes out;
  out.verb = verb;
  out.group = group;
  out.resource = resource;
  out.ns = ns;
  out.name = name;
  out.subresource = sub;
  return out;
}

Attributes on_url(std::string_view verb, std::string_view path) {
  Attributes out;
  out.verb = verb;
  out.path = path;
  out.on_path = true;
  return out;
}

TEST(PolicyRule, AllowsWhatKubernetesAllows) {
  struct {
    std::string_view rule;
    Attributes wanted;
    bool allowed;
  } const cases[] = {
      {R"({"verbs":["get"],"apiGroups":[""],"resources":["pods"]})", on("get", "", "pods"), true},
      {R"({"verbs":["get"],"apiGroups":[""],"resources":["pods"]})", on("list", "", "pods"), false},
      {R"({"verbs":["get"],"apiGroups":[""],"resources":["pods"]})", on("get", "apps", "pods"),
       false},
      {R"({"verbs":["get"],"apiGroups":[""],"resources":["pods"]})",
       on("get", "", "pods", "", "", "log"), false},
      {R"({"verbs":["get"],"apiGroups":[""],"resources":["pods/log"]})",
       on("get", "", "pods", "", "", "log"), true},
      {R"({"verbs":["get"],"apiGroups":[""],"resources":["pods/log"]})", on("get", "", "pods"),
       false},
      {R"({"verbs":["*"],"apiGroups":["*"],"resources":["*"]})",
       on("frob", "x.example", "widgets", "", "", "any"), true},
      {R"({"verbs":["update"],"apiGroups":["apps"],"resources":["*/scale"]})",
       on("update", "apps", "deployments", "", "", "scale"), true},
      {R"({"verbs":["update"],"apiGroups":["apps"],"resources":["*/scale"]})",
       on("update", "apps", "deployments", "", "", "status"), false},
      {R"({"verbs":["update"],"apiGroups":["apps"],"resources":["*/scale"]})",
       on("update", "apps", "scale"), false},
      {R"({"verbs":["get"],"apiGroups":[""],"resources":["secrets"],"resourceNames":["a"]})",
       on("get", "", "secrets", "", "a"), true},
      {R"({"verbs":["get"],"apiGroups":[""],"resources":["secrets"],"resourceNames":["a"]})",
       on("get", "", "secrets", "", "b"), false},
      {R"({"verbs":["list"],"apiGroups":[""],"resources":["secrets"],"resourceNames":["a"]})",
       on("list", "", "secrets"), false},
      {R"({"verbs":["get"],"nonResourceURLs":["/healthz"]})", on_url("get", "/healthz"), true},
      {R"({"verbs":["get"],"nonResourceURLs":["/logs/*"]})", on_url("get", "/logs/a/b"), true},
      {R"({"verbs":["get"],"nonResourceURLs":["/logs/*"]})", on_url("get", "/logs"), false},
      {R"({"verbs":["get"],"nonResourceURLs":["*"]})", on_url("get", "/x"), true},
      {R"({"verbs":["get"],"nonResourceURLs":["*"]})", on("get", "", "pods"), false},
      {R"({"verbs":["*"],"apiGroups":["*"],"resources":["*"]})", on_url("get", "/x"), false},
      {R"({})", on("get", "", "pods"), false},
  };
  for (const auto& c : cases) {
    const Rules rules = policy_rules(Value::array({parsed(c.rule)}));
    EXPECT_EQ(allows(rules[0], c.wanted), c.allowed)
        << c.rule << " " << c.wanted.resource << "/" << c.wanted.subresource << c.wanted.path;
  }
}

TEST(PolicyRule, NotCoveredIsWhatIsMissing) {
  const auto rules = [](std::string_view text) { return policy_rules(parsed(text)); };
  const Rules held = rules(R"([{"verbs":["get","list"],"apiGroups":[""],"resources":["pods"]},
    {"verbs":["*"],"apiGroups":["apps"],"resources":["*/scale"]},
    {"verbs":["get"],"apiGroups":[""],"resources":["secrets"],"resourceNames":["a"]},
    {"verbs":["get"],"nonResourceURLs":["/logs/*"]}])");
  const auto missing = [&](std::string_view text) {
    return compact_text(not_covered(held, rules(text)));
  };
  EXPECT_EQ(missing(R"([{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}])"), "");
  EXPECT_EQ(missing(R"([{"verbs":["get"],"apiGroups":[""],"resources":["pods"],
                         "resourceNames":["x"]}])"),
            "");
  EXPECT_EQ(missing(R"([{"verbs":["patch"],"apiGroups":["apps"],"resources":["sets/scale"]}])"),
            "");
  EXPECT_EQ(missing(R"([{"verbs":["get"],"nonResourceURLs":["/logs/a*"]}])"), "");
  EXPECT_EQ(missing(R"([{"verbs":["get","watch","delete"],"apiGroups":["","apps"],
                         "resources":["pods"]}])"),
            "{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"watch\" \"delete\"]}\n"
            "{APIGroups:[\"apps\"], Resources:[\"pods\"], Verbs:[\"get\" \"watch\" \"delete\"]}");
  EXPECT_EQ(missing(R"([{"verbs":["get"],"apiGroups":[""],"resources":["secrets"]}])"),
            "{APIGroups:[\"\"], Resources:[\"secrets\"], Verbs:[\"get\"]}");
  EXPECT_EQ(missing(R"([{"verbs":["get"],"apiGroups":[""],"resources":["secrets"],
                         "resourceNames":["a","b"]}])"),
            "{APIGroups:[\"\"], Resources:[\"secrets\"], ResourceNames:[\"b\"], Verbs:[\"get\"]}");
  EXPECT_EQ(missing(R"([{"verbs":["*"],"nonResourceURLs":["*"]}])"),
            "{NonResourceURLs:[\"*\"], Verbs:[\"*\"]}");
}

void add_defaults(Rbac& rbac) {
  for (const DefaultRole& role : default_roles()) rbac.apply(role.plural, Value(), role.object);
}

Value binding(std::string_view name, std::string_view ns, std::string_view role_kind,
              std::string_view role, std::string_view subject_kind, std::string_view subject,
              std::string_view subject_ns = {}) {
  Value out = Value::object();
  out.ref("metadata", "name") = name;
  if (!ns.empty()) out.ref("metadata", "namespace") = ns;
  out.set("roleRef", Value::object({{"kind", role_kind}, {"name", role}}));
  Value who = Value::object({{"kind", subject_kind}, {"name", subject}});
  if (!subject_ns.empty()) who.set("namespace", subject_ns);
  out.set("subjects", Value::array({std::move(who)}));
  return out;
}

TEST(Rbac, DeniesByDefaultAndMastersMayAll) {
  Rbac rbac;
  EXPECT_FALSE(rbac.decide({.user = "jane"}, on("get", "", "pods")).allowed);
  const Decision master =
      rbac.decide({.user = "x", .groups = {"system:masters"}}, on("frob", "a", "b"));
  EXPECT_TRUE(master.allowed);
  EXPECT_EQ(master.reason(), "");
}

TEST(Rbac, BindingsHoldInTheirScope) {
  Rbac rbac;
  add_defaults(rbac);
  rbac.apply("rolebindings", Value(), binding("b", "work", "ClusterRole", "view", "User", "jane"));
  const Caller jane{.user = "jane", .groups = {"system:authenticated"}};
  const Decision inside = rbac.decide(jane, on("list", "", "pods", "work"));
  EXPECT_TRUE(inside.allowed);
  EXPECT_EQ(inside.reason(),
            "RBAC: allowed by RoleBinding \"b/work\" of ClusterRole \"view\" to User \"jane\"");
  EXPECT_FALSE(rbac.decide(jane, on("list", "", "pods", "other")).allowed);
  EXPECT_FALSE(rbac.decide(jane, on("list", "", "pods")).allowed);
  EXPECT_FALSE(rbac.decide(jane, on("list", "", "secrets", "work")).allowed);
  EXPECT_FALSE(rbac.decide(jane, on("delete", "", "pods", "work")).allowed);
  EXPECT_EQ(rbac.decide(jane, on_url("get", "/healthz")).reason(),
            "RBAC: allowed by ClusterRoleBinding \"system:discovery\" of ClusterRole "
            "\"system:discovery\" to Group \"system:authenticated\"");
}

TEST(Rbac, ServiceAccountsAreFoundInTheirOrTheBindingsNamespace) {
  Rbac rbac;
  add_defaults(rbac);
  rbac.apply("rolebindings", Value(),
             binding("near", "work", "ClusterRole", "view", "ServiceAccount", "bot"));
  rbac.apply("clusterrolebindings", Value(),
             binding("far", "", "ClusterRole", "edit", "ServiceAccount", "bot", "ops"));
  rbac.apply("clusterrolebindings", Value(),
             binding("none", "", "ClusterRole", "edit", "ServiceAccount", "lost"));
  const auto may = [&](std::string_view user, std::string_view verb, std::string_view ns) {
    return rbac.decide({.user = std::string(user)}, on(verb, "", "pods", ns)).allowed;
  };
  EXPECT_TRUE(may("system:serviceaccount:work:bot", "list", "work"));
  EXPECT_FALSE(may("system:serviceaccount:other:bot", "list", "work"));
  EXPECT_TRUE(may("system:serviceaccount:ops:bot", "delete", "anywhere"));
  EXPECT_FALSE(may("system:serviceaccount::lost", "list", "work"));
}

TEST(Rbac, MissingRolesAreNamedInTheDenial) {
  Rbac rbac;
  rbac.apply("rolebindings", Value(), binding("b", "w", "Role", "gone", "User", "jane"));
  rbac.apply("clusterrolebindings", Value(),
             binding("c", "", "ClusterRole", "lost", "User", "jane"));
  EXPECT_EQ(rbac.decide({.user = "jane"}, on("get", "", "pods", "w")).reason(),
            "RBAC: [clusterrole.rbac.authorization.k8s.io \"lost\" not found, "
            "role.rbac.authorization.k8s.io \"gone\" not found]");
  EXPECT_EQ(rbac.decide({.user = "jane"}, on("get", "", "nodes")).reason(),
            "RBAC: clusterrole.rbac.authorization.k8s.io \"lost\" not found");
}

TEST(Rbac, ChangesCountAtOnce) {
  Rbac rbac;
  add_defaults(rbac);
  const Caller jane{.user = "jane"};
  const Value first = binding("b", "w", "ClusterRole", "view", "User", "jane");
  const Value second = binding("b", "w", "ClusterRole", "view", "User", "joe");
  const auto may = [&] { return rbac.decide(jane, on("get", "", "pods", "w")).allowed; };
  EXPECT_FALSE(may());
  rbac.apply("rolebindings", Value(), first);
  EXPECT_TRUE(may());
  rbac.apply("rolebindings", first, second);
  EXPECT_FALSE(may());
  rbac.apply("rolebindings", second, first);
  EXPECT_TRUE(may());
  rbac.apply("rolebindings", first, Value());
  EXPECT_FALSE(may());
}

TEST(Rbac, AggregatedRolesFollowTheirLabels) {
  Rbac rbac;
  add_defaults(rbac);
  rbac.apply("clusterrolebindings", Value(),
             binding("b", "", "ClusterRole", "admin", "User", "jane"));
  const Caller jane{.user = "jane"};
  EXPECT_TRUE(rbac.decide(jane, on("list", "", "pods")).allowed) << "admin holds edit holds view";
  EXPECT_TRUE(rbac.decide(jane, on("create", "rbac.authorization.k8s.io", "roles", "w")).allowed);
  EXPECT_FALSE(rbac.decide(jane, on("get", "tessera.dev", "queues")).allowed);
  const Value extra = parsed(R"({"metadata":{"name":"queues",
    "labels":{"rbac.authorization.k8s.io/aggregate-to-view":"true"}},
    "rules":[{"verbs":["get"],"apiGroups":["tessera.dev"],"resources":["queues"]}]})");
  rbac.apply("clusterroles", Value(), extra);
  EXPECT_TRUE(rbac.decide(jane, on("get", "tessera.dev", "queues")).allowed);
  const auto stale = rbac.stale_aggregates();
  ASSERT_TRUE(stale.contains("view"));
  EXPECT_EQ(stale.size(), 3u);
  rbac.apply("clusterroles", extra, Value());
  EXPECT_FALSE(rbac.decide(jane, on("get", "tessera.dev", "queues")).allowed);
}

TEST(Rbac, ANewClusterHasNothingLeftToAggregate) {
  Rbac rbac;
  add_defaults(rbac);
  EXPECT_TRUE(rbac.stale_aggregates().empty());
}

TEST(Rbac, CirclesOfAggregationEnd) {
  Rbac rbac;
  for (const char* name : {"a", "b"}) {
    Value role = parsed(R"({"aggregationRule":{"clusterRoleSelectors":[{}]}})");
    role.ref("metadata", "name") = name;
    rbac.apply("clusterroles", Value(), role);
  }
  rbac.apply("clusterrolebindings", Value(), binding("x", "", "ClusterRole", "a", "User", "u"));
  EXPECT_FALSE(rbac.decide({.user = "u"}, on("get", "", "pods")).allowed);
}

TEST(DefaultRoles, AreThoseOfKubernetes) {
  const auto roles = default_roles();
  const auto count = [&](std::string_view plural) {
    return std::ranges::count(roles, plural, &DefaultRole::plural);
  };
  EXPECT_EQ(count("clusterroles"), 31);
  EXPECT_EQ(count("clusterrolebindings"), 12);
  EXPECT_EQ(count("roles"), 3);
  EXPECT_EQ(count("rolebindings"), 3);
  const auto basic = std::ranges::find_if(roles, [](const DefaultRole& role) {
    return role.object["metadata"]["name"].as_string() == "system:basic-user";
  });
  EXPECT_EQ(
      basic->object["rules"].dump(),
      R"([{"apiGroups":["authorization.k8s.io"],"resources":["selfsubjectaccessreviews",)"
      R"("selfsubjectrulesreviews"],"verbs":["create"]},{"apiGroups":["authentication.k8s.io"],)"
      R"("resources":["selfsubjectreviews"],"verbs":["create"]}])");
}

// The same question, answered by looking at every object.
class Oracle {
 public:
  std::map<std::string, Value> roles, cluster_roles, bindings, cluster_bindings;

  bool decide(const Caller& caller, const Attributes& wanted) const {
    for (const auto& [key, binding] : cluster_bindings) {
      if (applies(caller, binding, "") && rules_allow(binding, "", wanted)) return true;
    }
    if (wanted.ns.empty()) return false;
    for (const auto& [key, binding] : bindings) {
      if (binding["metadata"]["namespace"].as_string() != wanted.ns) continue;
      const std::string ns(wanted.ns);
      if (applies(caller, binding, ns) && rules_allow(binding, ns, wanted)) return true;
    }
    return false;
  }

 private:
  static bool applies(const Caller& caller, const Value& binding, const std::string& ns) {
    for (const Value& subject : binding["subjects"].items()) {
      const std::string name = subject["name"].str();
      const std::string kind = subject["kind"].str();
      if (kind == "User" && name == caller.user) return true;
      if (kind == "Group" && std::ranges::find(caller.groups, name) != caller.groups.end()) {
        return true;
      }
      std::string own = subject["namespace"].str();
      if (own.empty()) own = ns;
      if (kind == "ServiceAccount" && !own.empty() &&
          caller.user == "system:serviceaccount:" + own + ":" + name) {
        return true;
      }
    }
    return false;
  }
  static bool any(const Value& list, std::string_view a, std::string_view b = {}) {
    return std::ranges::any_of(list.items(), [&](const Value& item) {
      return item.as_string() == "*" || item.as_string() == a ||
             (!b.empty() && item.as_string() == b);
    });
  }
  bool rules_allow(const Value& binding, const std::string& ns, const Attributes& wanted) const {
    const std::string name = binding["roleRef"]["name"].str();
    const bool local = binding["roleRef"]["kind"].as_string() == "Role";
    const auto& table = local ? roles : cluster_roles;
    const auto role = table.find(local ? ns + "/" + name : name);
    if (role == table.end()) return false;
    for (const Value& rule : role->second["rules"].items()) {
      std::string full(wanted.resource);
      std::string star;
      if (!wanted.subresource.empty()) {
        full += "/" + std::string(wanted.subresource);
        star = "*/" + std::string(wanted.subresource);
      }
      if (any(rule["verbs"], wanted.verb) && any(rule["apiGroups"], wanted.group) &&
          any(rule["resources"], full, star) &&
          (rule["resourceNames"].empty() ||
           std::ranges::any_of(rule["resourceNames"].items(), [&](const Value& item) {
             return item.as_string() == wanted.name;
           }))) {
        return true;
      }
    }
    return false;
  }
};

class RandomRbac {
 public:
  explicit RandomRbac(uint64_t seed) : random_(seed) {}

  const char* pick(std::initializer_list<const char*> from) {
    return from.begin()[random_.below(from.size())];
  }
  Value list(std::initializer_list<const char*> from, uint64_t max) {
    Value out = Value::array();
    for (uint64_t n = random_.below(max) + 1; n > 0; --n) out.push_back(pick(from));
    return out;
  }
  Value rule() {
    Value out = Value::object({{"verbs", list({"get", "list", "create", "*"}, 2)},
                               {"apiGroups", list({"", "apps", "*"}, 2)},
                               {"resources", list({"pods", "pods/log", "*/log", "sets", "*"}, 2)}});
    if (random_.chance(0.3)) out.set("resourceNames", list({"a", "b"}, 2));
    return out;
  }
  void step(Rbac& rbac, Oracle& oracle) {
    const std::string ns = pick({"n1", "n2"});
    const std::string name = pick({"x", "y", "z"});
    switch (random_.below(4)) {
      case 0:
        return put(rbac, "roles", oracle.roles, ns, name, role());
      case 1:
        return put(rbac, "clusterroles", oracle.cluster_roles, "", name, role());
      case 2:
        return put(rbac, "rolebindings", oracle.bindings, ns, name, binding(true));
      default:
        return put(rbac, "clusterrolebindings", oracle.cluster_bindings, "", name, binding(false));
    }
  }
  Caller caller() {
    Caller out;
    out.user = pick({"u1", "u2", "system:serviceaccount:n1:u1", "system:serviceaccount:n2:u2"});
    if (random_.chance(0.5)) out.groups.emplace_back(pick({"g1", "g2"}));
    return out;
  }
  Attributes wanted() {
    return on(pick({"get", "list", "create", "delete"}), pick({"", "apps", "batch"}),
              pick({"pods", "sets"}), pick({"", "n1", "n2"}), pick({"", "a", "c"}),
              pick({"", "", "log"}));
  }

 private:
  Value role() {
    Value out = Value::object({{"rules", Value::array()}});
    for (uint64_t n = random_.below(3); n > 0; --n) out.ref("rules").push_back(rule());
    return out;
  }
  Value binding(bool local) {
    Value out = Value::object();
    out.set("roleRef",
            Value::object({{"kind", local ? pick({"Role", "ClusterRole"}) : "ClusterRole"},
                           {"name", pick({"x", "y", "z"})}}));
    for (uint64_t n = random_.below(3); n > 0; --n) {
      Value subject = Value::object({{"kind", pick({"User", "Group", "ServiceAccount"})},
                                     {"name", pick({"u1", "u2", "g1", "g2"})}});
      if (random_.chance(0.5)) subject.set("namespace", pick({"n1", "n2"}));
      out.ref("subjects").push_back(std::move(subject));
    }
    return out;
  }
  void put(Rbac& rbac, std::string_view plural, std::map<std::string, Value>& table,
           const std::string& ns, const std::string& name, Value object) {
    object.ref("metadata", "name") = name;
    if (!ns.empty()) object.ref("metadata", "namespace") = ns;
    const std::string key = ns.empty() ? name : ns + "/" + name;
    const Value before = table.contains(key) ? table[key] : Value();
    if (random_.chance(0.25)) object = Value();
    if (before.is_null() && object.is_null()) return;
    rbac.apply(plural, before, object);
    if (object.is_null()) {
      table.erase(key);
    } else {
      table[key] = object;
    }
  }

  base::Random random_;
};

TEST(Rbac, DecidesAsALookAtEveryObjectDoes) {
  int allowed = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    RandomRbac world(seed);
    Rbac rbac;
    Oracle oracle;
    for (int i = 0; i < 60; ++i) {
      world.step(rbac, oracle);
      for (int k = 0; k < 10; ++k) {
        const Caller caller = world.caller();
        const Attributes wanted = world.wanted();
        const bool expected = oracle.decide(caller, wanted);
        allowed += expected ? 1 : 0;
        ASSERT_EQ(rbac.decide(caller, wanted).allowed, expected)
            << "seed " << seed << " step " << i << " " << caller.user << " " << wanted.verb << " "
            << wanted.group << " " << wanted.resource << " " << wanted.ns;
      }
    }
  }
  EXPECT_GT(allowed, 500);
}

}  // namespace
}  // namespace tessera::apiserver
