#include <gtest/gtest.h>

#include "apiserver/ip_address.h"
#include "apiserver/kinds_cases.h"

namespace tessera::apiserver {
namespace {

using json::Value;
using namespace testing_kinds;

constexpr const char* kNetworking = "networking.k8s.io";

TEST(NetworkPolicy, GetsItsDefaults) {
  const Kind& kind = kind_of(kNetworking, "NetworkPolicy");
  const Value policy = stored(
      kind, "{metadata: {name: p}, spec: {podSelector: {}, egress: [{ports: [{port: 53}]}]}}");
  EXPECT_EQ(policy["spec"].dump(),
            R"({"egress":[{"ports":[{"port":53,"protocol":"TCP"}]}],"podSelector":{},)"
            R"("policyTypes":["Ingress","Egress"]})");
}

TEST(NetworkPolicy, RefusesWhatCannotWork) {
  expect_rules(
      kind_of(kNetworking, "NetworkPolicy"), "{metadata: {name: p}, spec: {podSelector: {}}}",
      {{"{spec: {podSelector: {matchLabels: {a: \"b c\"}}}}", "spec.podSelector.matchLabels"},
       {"{spec: {ingress: [{ports: [{protocol: ICMP}]}]}}",
        "spec.ingress[0].ports[0].protocol: Unsupported value: \"ICMP\": supported values: "
        "\"TCP\", "
        "\"UDP\", \"SCTP\""},
       {"{spec: {ingress: [{ports: [{port: 0}]}]}}",
        "spec.ingress[0].ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive"},
       {"{spec: {ingress: [{ports: [{port: UPPER}]}]}}",
        "spec.ingress[0].ports[0].port: Invalid value: \"UPPER\""},
       {"{spec: {ingress: [{ports: [{port: 80, endPort: 90}]}]}}", ""},
       {"{spec: {ingress: [{ports: [{port: 80, endPort: 70}]}]}}",
        "spec.ingress[0].ports[0].endPort: Invalid value: 80: must be greater than or equal to "
        "`port`"},
       {"{spec: {ingress: [{ports: [{port: http, endPort: 70}]}]}}",
        "may not be specified when `port` is non-numeric"},
       {"{spec: {ingress: [{ports: [{endPort: 70}]}]}}",
        "may not be specified when `port` is not specified"},
       {"{spec: {egress: [{to: [{}]}]}}",
        "spec.egress[0].to[0]: Required value: must specify a peer"},
       {"{spec: {egress: [{to: [{podSelector: {}, ipBlock: {cidr: 10.0.0.0/8}}]}]}}",
        "spec.egress[0].to[0]: Forbidden: may not specify both ipBlock and another peer"},
       {"{spec: {egress: [{to: [{namespaceSelector: {}, podSelector: {}}]}]}}", ""},
       {"{spec: {egress: [{to: [{ipBlock: {cidr: \"\"}}]}]}}",
        "spec.egress[0].to[0].ipBlock.cidr: Required value"},
       {"{spec: {egress: [{to: [{ipBlock: {cidr: 10.0.0.0}}]}]}}",
        "cidr: Invalid value: \"10.0.0.0\": must be a valid CIDR value, (e.g. 10.9.8.0/24 or "
        "2001:db8::/64)"},
       {"{spec: {egress: [{to: [{ipBlock: {cidr: 10.0.0.1/8}}]}]}}",
        "must not have bits set beyond the prefix length"},
       {"{spec: {egress: [{to: [{ipBlock: {cidr: 10.0.0.0/8, except: [10.1.0.0/16]}}]}]}}", ""},
       {"{spec: {egress: [{to: [{ipBlock: {cidr: 10.0.0.0/8, except: [11.0.0.0/16]}}]}]}}",
        "except[0]: Invalid value: \"11.0.0.0/16\": must be a strict subset of `cidr`"},
       {"{spec: {policyTypes: [Sideways]}}",
        "spec.policyTypes[0]: Unsupported value: \"Sideways\""},
       {"{spec: {policyTypes: [Ingress, Egress, Ingress]}}",
        "may not specify more than two policyTypes"}});
}

constexpr const char* kIngress = R"(
metadata: {name: i}
spec:
  rules:
  - host: a.example.com
    http: {paths: [{path: /, pathType: Prefix, backend: {service: {name: s, port: {number: 80}}}}]})";

std::vector<RuleCase> ingress_cases() {
  return {
      {"{spec: {rules: []}}",
       "spec: Invalid value: null: either `defaultBackend` or `rules` must be specified"},
      {"{spec: {rules: [], defaultBackend: {service: {name: s, port: {name: http}}}}}", ""},
      {"{spec: {defaultBackend: {}}}",
       "spec.defaultBackend: Invalid value: \"\": resource or service backend is required"},
      {"{spec: {defaultBackend: {service: {name: s}, resource: {kind: K, name: nn}}}}",
       "cannot set both resource and service backends"},
      {"{spec: {defaultBackend: {resource: {kind: \"\", name: a/b, apiGroup: A}}}}",
       "spec.defaultBackend.resource.apiGroup: Invalid value: \"A\""},
      {"{spec: {defaultBackend: {resource: {kind: K, name: a/b}}}}",
       "spec.defaultBackend.resource.name: Invalid value: \"a/b\": may not contain '/'"},
      {"{spec: {defaultBackend: {service: {name: \"\", port: {number: 1}}}}}",
       "spec.defaultBackend.service.name: Required value"},
      {"{spec: {defaultBackend: {service: {name: A, port: {number: 1}}}}}",
       "spec.defaultBackend.service.name: Invalid value: \"A\""},
      {"{spec: {defaultBackend: {service: {name: s}}}}",
       "spec.defaultBackend: Required value: port name or number is required"},
      {"{spec: {defaultBackend: {service: {name: s, port: {name: a, number: 1}}}}}",
       "cannot set both port name & port number"},
      {"{spec: {defaultBackend: {service: {name: s, port: {number: 70000}}}}}",
       "spec.defaultBackend.service.port.number: Invalid value: 70000"},
      {"{spec: {rules: [{host: 1.2.3.4}]}}",
       "spec.rules[0].host: Invalid value: \"1.2.3.4\": must be a DNS name, not an IP address"},
      {"{spec: {rules: [{host: \"*.example.com\"}]}}", ""},
      {"{spec: {rules: [{host: \"a.*.com\"}]}}",
       "spec.rules[0].host: Invalid value: \"a.*.com\": a wildcard DNS-1123 subdomain must start "
       "with '*.'"},
      {"{spec: {rules: [{host: A}]}}", "spec.rules[0].host: Invalid value: \"A\""},
      {"{spec: {rules: [{http: {paths: []}}]}}", "spec.rules[0].http.paths: Required value"},
      {"{spec: {tls: [{hosts: [\"x y\"], secretName: A}]}}",
       "spec.tls[0].hosts[0]: Invalid value: \"x y\""},
      {"{spec: {tls: [{secretName: A}]}}", "spec.tls[0].secretName: Invalid value: \"A\""},
      {"{spec: {ingressClassName: A}}", "spec.ingressClassName: Invalid value: \"A\""},
      {"{metadata: {annotations: {kubernetes.io/ingress.class: a}}, spec: {ingressClassName: b}}",
       "annotations.kubernetes.io/ingress.class: Invalid value: \"a\": must match "
       "`ingressClassName` when both are specified"}};
}

TEST(Ingress, RefusesWhatCannotWork) {
  const Kind& kind = kind_of(kNetworking, "Ingress");
  EXPECT_EQ(stored(kind, kIngress)["status"].dump(), R"({"loadBalancer":{}})");
  expect_rules(kind, kIngress, ingress_cases());
}

TEST(Ingress, ChecksItsPaths) {
  const auto with = [](const char* path) {
    return fmt::format("{{spec: {{rules: [{{http: {{paths: [{}]}}}}]}}}}", path);
  };
  constexpr const char* kBackend = "backend: {service: {name: s, port: {number: 80}}}";
  const std::pair<const char*, const char*> cases[] = {
      {"path: /a", "paths[0].pathType: Required value: pathType must be specified"},
      {"path: /a, pathType: Regex",
       "paths[0].pathType: Unsupported value: \"Regex\": supported values: \"Exact\", "
       "\"ImplementationSpecific\", \"Prefix\""},
      {"path: a, pathType: Exact", "paths[0].path: Invalid value: \"a\": must be an absolute path"},
      {"path: a, pathType: ImplementationSpecific", "must be an absolute path"},
      {"pathType: ImplementationSpecific", ""},
      {"path: /a//b, pathType: Prefix", "must not contain '//'"},
      {"path: /a%2fb, pathType: Prefix", "must not contain '%2f'"},
      {"path: /a/.., pathType: Prefix", "cannot end with '/..'"}};
  for (const auto& [path, wrong] : cases) {
    const std::string change = with(fmt::format("{{{}, {}}}", path, kBackend).c_str());
    expect_rules(kind_of(kNetworking, "Ingress"), kIngress, {{change.c_str(), wrong}});
  }
}

TEST(IngressClass, RefusesWhatCannotWork) {
  const Kind& kind = kind_of(kNetworking, "IngressClass");
  constexpr const char* kBase =
      "{metadata: {name: c}, spec: {controller: example.com/c, parameters: {kind: K, name: nn}}}";
  EXPECT_EQ(stored(kind, kBase)["spec"]["parameters"]["scope"].as_string(), "Cluster");
  const std::string longer(251, 'a');
  const std::string too_long = "{spec: {controller: a.b/" + longer + "}}";
  expect_rules(
      kind, kBase,
      {{"{spec: {controller: \"\"}}", "spec.controller: Required value"},
       {"{spec: {controller: a}}", "must be a domain-prefixed path"},
       {too_long.c_str(), "spec.controller: Too long: may not be more than 250 bytes"},
       {"{spec: {parameters: {kind: \"\"}}}", "spec.parameters.kind: Required value"},
       {"{spec: {parameters: {scope: X}}}", "spec.parameters.scope: Unsupported value: \"X\""},
       {"{spec: {parameters: {scope: Namespace}}}",
        "spec.parameters.namespace: Required value: `parameters.scope` is set to 'Namespace'"},
       {"{spec: {parameters: {scope: Namespace, namespace: A}}}",
        "spec.parameters.namespace: Invalid value: \"A\""},
       {"{spec: {parameters: {namespace: a}}}",
        "spec.parameters.namespace: Forbidden: `parameters.scope` is set to 'Cluster'"}});
  expect_update_rules(kind, kBase,
                      {{"{spec: {controller: example.com/d}}", "spec.controller: Invalid value"}});
}

constexpr const char* kSlice =
    "{metadata: {name: s}, addressType: IPv4, ports: [{port: 80}], endpoints: [{addresses: "
    "[10.0.0.1]}]}";

TEST(EndpointSlice, GetsItsDefaults) {
  const Kind& kind = kind_of("discovery.k8s.io", "EndpointSlice");
  EXPECT_EQ(stored(kind, kSlice)["ports"].dump(), R"([{"name":"","port":80,"protocol":"TCP"}])");
  const Value bare = stored(kind, "{metadata: {name: s}, addressType: IPv6}");
  EXPECT_TRUE(bare.contains("endpoints") && bare["endpoints"].is_null());
}

TEST(EndpointSlice, RefusesWhatCannotWork) {
  const auto endpoint = [](const char* text) {
    return std::string("{endpoints: [{addresses: [10.0.0.1], ").append(text).append("}]}");
  };
  const std::string hints = endpoint("hints: {forZones: [{name: a}, {name: a}]}");
  const std::string node = endpoint("nodeName: A");
  const std::string host = endpoint("hostname: A");
  const std::string zone = endpoint("hints: {forZones: [{name: \"a b\"}]}");
  expect_rules(
      kind_of("discovery.k8s.io", "EndpointSlice"), kSlice,
      {{"{addressType: IPX}",
        "addressType: Unsupported value: \"IPX\": supported values: \"FQDN\", \"IPv4\", \"IPv6\""},
       {"{addressType: \"\"}", "addressType: Required value"},
       {"{ports: [{name: A}]}", "ports[0].name: Invalid value: \"A\""},
       {"{ports: [{port: 1}, {port: 2}]}", "ports[1].name: Duplicate value: \"\""},
       {"{ports: [{protocol: X}]}", "ports[0].protocol: Unsupported value: \"X\""},
       {"{ports: [{appProtocol: \"a b\"}]}", "ports[0].appProtocol: Invalid value: \"a b\""},
       {"{endpoints: [{addresses: []}]}",
        "endpoints[0].addresses: Required value: must contain at least 1 address"},
       {"{endpoints: [{addresses: [x]}]}",
        "endpoints[0].addresses[0]: Invalid value: \"x\": must be a valid IP address, (e.g. "
        "10.9.8.7 or 2001:db8::ffff)"},
       {"{endpoints: [{addresses: [\"::1\"]}]}",
        "endpoints[0].addresses: Invalid value: \"::1\": must be an IPv4 address"},
       {"{endpoints: [{addresses: [127.0.0.1]}]}", "may not be in the loopback range"},
       {"{endpoints: [{addresses: [0.0.0.0]}]}", "may not be unspecified (0.0.0.0)"},
       {"{endpoints: [{addresses: [169.254.0.1]}]}", "may not be in the link-local range"},
       {"{endpoints: [{addresses: [224.0.0.1]}]}", "may not be in the link-local multicast range"},
       {"{addressType: FQDN, endpoints: [{addresses: [host]}]}",
        "should be a domain with at least two segments separated by dots"},
       {"{addressType: FQDN, endpoints: [{addresses: [a.b.]}]}", ""},
       {node.c_str(), "endpoints[0].nodeName: Invalid value: \"A\""},
       {host.c_str(), "endpoints[0].hostname: Invalid value: \"A\""},
       {hints.c_str(), "endpoints[0].hints.forZones[1].name: Duplicate value: \"a\""},
       {zone.c_str(), "endpoints[0].hints.forZones[0].name: Invalid value: \"a b\""}});
  expect_update_rules(kind_of("discovery.k8s.io", "EndpointSlice"), kSlice,
                      {{"{addressType: FQDN, endpoints: []}",
                        "addressType: Invalid value: \"FQDN\": field is immutable"}});
}

TEST(Endpoints, RefusesWhatCannotWork) {
  constexpr const char* kBase =
      "{metadata: {name: e}, subsets: [{addresses: [{ip: 10.0.0.1}], ports: [{port: 80}]}]}";
  const Kind& kind = kind_of("", "Endpoints");
  EXPECT_EQ(stored(kind, kBase)["subsets"].at(0)["ports"].dump(),
            R"([{"port":80,"protocol":"TCP"}])");
  expect_rules(
      kind, kBase,
      {{"{subsets: [{ports: [{port: 80}]}]}",
        "subsets[0]: Required value: must specify `addresses` or `notReadyAddresses`"},
       {"{subsets: [{addresses: [{ip: x}]}]}",
        "subsets[0].addresses[0].ip: Invalid value: \"x\": must be a valid IP address, (e.g. "
        "10.9.8.7 or 2001:db8::ffff)\nsubsets[0].addresses[0].ip: Invalid value: \"x\": must be a "
        "valid IP address"},
       {"{subsets: [{notReadyAddresses: [{ip: 10.0.0.1, nodeName: A, hostname: B}]}]}",
        "subsets[0].notReadyAddresses[0].hostname: Invalid value: \"B\""},
       {"{subsets: [{addresses: [{ip: 10.0.0.1}], ports: [{port: 1}, {port: 2}]}]}",
        "subsets[0].ports[0].name: Required value"},
       {"{subsets: [{addresses: [{ip: 10.0.0.1}], ports: [{port: 0}]}]}",
        "subsets[0].ports[0].port: Invalid value: 0"},
       {"{subsets: [{addresses: [{ip: 10.0.0.1}], ports: [{port: 1, protocol: X}]}]}",
        "subsets[0].ports[0].protocol: Unsupported value: \"X\""}});
}

TEST(IpAddress, ReadsBothFamiliesAndNothingElse) {
  for (const char* good : {"0.0.0.0", "10.9.8.7", "::", "2001:db8::ffff", "::ffff:1.2.3.4"}) {
    EXPECT_TRUE(IpAddress::parse(good)) << good;
  }
  for (const char* bad :
       {"", "1.2.3", "1.2.3.4.5", "010.0.0.1", "256.0.0.1", ":::", "fe80::1%eth0", " 1.2.3.4"}) {
    EXPECT_FALSE(IpAddress::parse(bad)) << bad;
  }
  EXPECT_FALSE(IpAddress::parse(std::string_view("1.2.3.4\0x", 9)));
  for (const char* bad :
       {"10.0.0.0", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/08", "10.0.0.0/-1", "::/129", "x/8"}) {
    EXPECT_FALSE(IpPrefix::parse(bad)) << bad;
  }
  EXPECT_TRUE(IpPrefix::parse("2001:db8::/32")->contains(*IpAddress::parse("2001:db8:1::1")));
  EXPECT_FALSE(IpPrefix::parse("10.0.0.0/8")->contains(*IpAddress::parse("::1")));
}

}  // namespace
}  // namespace tessera::apiserver
