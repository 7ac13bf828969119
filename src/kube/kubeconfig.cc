#include "kube/kubeconfig.h"

#include "base/file.h"
#include "http/tls.h"
#include "json/yaml.h"

namespace tessera::kube {
namespace {

using base::Code;

constexpr size_t kFileBytesMax = 1 << 20;

// Reads one kubeconfig; every error starts with the file's name.
class Reader {
 public:
  Reader(const json::Value& root, std::string_view name, const std::string& directory)
      : root_(root), name_(name), directory_(directory) {}

  base::Result<Kubeconfig> read(std::string_view wanted) const {
    Kubeconfig out;
    out.context = wanted.empty() ? root_["current-context"].as_string() : wanted;
    if (out.context.empty()) {
      return base::error(Code::kNotFound,
                         "{}: no current-context; set it or name one of the contexts: {}", name_,
                         names_of("contexts"));
    }
    TS_TRY(const json::Value context, entry("contexts", "context", out.context));
    out.ns = context["namespace"].as_string();
    if (out.ns.empty()) out.ns = "default";
    TS_TRY(const json::Value cluster, entry("clusters", "cluster", context["cluster"].str()));
    TS_TRY_STATUS(read_cluster(cluster, context["cluster"].str(), out.client));
    if (const json::Value& user = context["user"]; !user.as_string().empty()) {
      TS_TRY(const json::Value settings, entry("users", "user", user.str()));
      TS_TRY_STATUS(read_user(settings, user.str(), out.client));
    }
    return out;
  }

 private:
  std::string names_of(std::string_view list) const {
    std::string out;
    for (const json::Value& item : root_[list].items()) {
      if (!out.empty()) out += ", ";
      out += item["name"].as_string();
    }
    return out.empty() ? "(none)" : out;
  }

  base::Result<json::Value> entry(std::string_view list, std::string_view kind,
                                  const std::string& name) const {
    for (const json::Value& item : root_[list].items()) {
      if (item["name"].as_string() == name) return item[kind];
    }
    return base::error(Code::kNotFound, "{}: no {} named \"{}\"; there are: {}", name_, kind, name,
                       names_of(list));
  }

  // "x-data" in base64, or the file that "x" names; empty where there is neither.
  base::Status read_pem(const json::Value& entry, const std::string& key, std::string_view where,
                        std::string& out) const {
    if (const std::string_view data = entry[key + "-data"].as_string(); !data.empty()) {
      auto bytes = http::unbase64(data);
      if (!bytes) {
        return base::error(Code::kBadRequest, "{}: {}.{}-data: {}", name_, where, key,
                           bytes.error().message);
      }
      out = std::move(*bytes);
      return {};
    }
    return read_named_file(entry[key].str(), where, key, out);
  }

  base::Status read_named_file(std::string path, std::string_view where, std::string_view key,
                               std::string& out) const {
    if (path.empty()) return {};
    if (path[0] != '/') path = directory_ + "/" + path;
    auto text = base::read_file(path, kFileBytesMax);
    if (!text) {
      return base::error(text.error().code, "{}: {}.{}: {}", name_, where, key,
                         text.error().message);
    }
    out = std::move(*text);
    return {};
  }

  base::Status read_cluster(const json::Value& cluster, const std::string& name,
                            http::ClientOptions& out) const {
    const std::string where = "clusters." + name;
    out.base_url = cluster["server"].as_string();
    while (out.base_url.ends_with('/')) out.base_url.pop_back();
    if (!out.base_url.starts_with("https://") && !out.base_url.starts_with("http://")) {
      return base::error(Code::kInvalid,
                         "{}: {}.server: \"{}\" is not a URL; write https://HOST:PORT", name_,
                         where, out.base_url);
    }
    for (const char* key : {"insecure-skip-tls-verify", "tls-server-name", "proxy-url"}) {
      if (cluster.contains(key) && cluster[key] != json::Value(false)) {
        return base::error(Code::kInvalid,
                           "{}: {}.{}: is not supported; give certificate-authority instead", name_,
                           where, key);
      }
    }
    return read_pem(cluster, "certificate-authority", where, out.ca_pem);
  }

  base::Status read_user(const json::Value& user, const std::string& name,
                         http::ClientOptions& out) const {
    const std::string where = "users." + name;
    for (const char* key : {"exec", "auth-provider", "username", "as"}) {
      if (!user.contains(key)) continue;
      return base::error(Code::kInvalid,
                         "{}: {}.{}: is not supported; use a client certificate or a token", name_,
                         where, key);
    }
    TS_TRY_STATUS(read_pem(user, "client-certificate", where, out.certificate_pem));
    TS_TRY_STATUS(read_pem(user, "client-key", where, out.private_key_pem));
    out.bearer_token = user["token"].as_string();
    if (out.bearer_token.empty()) {
      out.bearer_token_file = user["tokenFile"].str();
      if (!out.bearer_token_file.empty() && out.bearer_token_file[0] != '/') {
        out.bearer_token_file = directory_ + "/" + out.bearer_token_file;
      }
      TS_TRY_STATUS(read_named_file(out.bearer_token_file, where, "tokenFile", out.bearer_token));
    }
    while (out.bearer_token.ends_with('\n')) out.bearer_token.pop_back();
    if (out.certificate_pem.empty() != out.private_key_pem.empty()) {
      return base::error(Code::kInvalid,
                         "{}: {}: has only one of client-certificate and client-key; give both",
                         name_, where);
    }
    return {};
  }

  const json::Value& root_;
  std::string_view name_;
  const std::string& directory_;
};

}  // namespace

base::Result<Kubeconfig> parse_kubeconfig(std::string_view text, const std::string& directory,
                                          std::string_view context, std::string_view name) {
  auto root = json::parse_yaml(text, {.bytes_max = kFileBytesMax});
  if (!root) return base::error(root.error().in(name));
  if ((*root)["kind"].as_string() != "Config") {
    return base::error(Code::kBadRequest, "{}: is no kubeconfig: kind is {}, not \"Config\"", name,
                       (*root)["kind"].dump());
  }
  return Reader(*root, name, directory).read(context);
}

base::Result<Kubeconfig> load_kubeconfig(const std::string& path, std::string_view context) {
  TS_TRY(const std::string text, base::read_file(path, kFileBytesMax));
  const size_t slash = path.rfind('/');
  const std::string directory =
      slash == path.npos ? "." : (slash == 0 ? "/" : path.substr(0, slash));
  return parse_kubeconfig(text, directory, context, path);
}

std::string make_kubeconfig(const KubeconfigEntry& entry) {
  using json::Value;
  Value cluster = Value::object({{"server", entry.server}});
  if (!entry.ca_pem.empty()) {
    cluster.set("certificate-authority-data", http::base64(entry.ca_pem));
  }
  Value user = Value::object();
  if (!entry.certificate_pem.empty()) {
    user.set("client-certificate-data", http::base64(entry.certificate_pem));
    user.set("client-key-data", http::base64(entry.private_key_pem));
  }
  const auto named = [&](const char* kind, Value value) {
    return Value::array({Value::object({{"name", entry.name}, {kind, std::move(value)}})});
  };
  return json::to_yaml(Value::object(
      {{"apiVersion", "v1"},
       {"kind", "Config"},
       {"clusters", named("cluster", std::move(cluster))},
       {"users", named("user", std::move(user))},
       {"contexts",
        named("context", Value::object({{"cluster", entry.name}, {"user", entry.name}}))},
       {"current-context", entry.name},
       {"preferences", Value::object()}}));
}

base::Result<Kubeconfig> in_cluster_config(std::string_view host, std::string_view port,
                                           const std::string& directory) {
  if (host.empty() || port.empty()) {
    return base::error(Code::kNotFound,
                       "not in a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are "
                       "not set; give a kubeconfig");
  }
  Kubeconfig out;
  out.context = "in-cluster";
  const bool ipv6 = host.find(':') != host.npos;
  out.client.base_url =
      ipv6 ? fmt::format("https://[{}]:{}", host, port) : fmt::format("https://{}:{}", host, port);
  out.client.bearer_token_file = directory + "/token";
  TS_TRY(out.client.bearer_token, base::read_file(out.client.bearer_token_file, kFileBytesMax));
  while (out.client.bearer_token.ends_with('\n')) out.client.bearer_token.pop_back();
  TS_TRY(out.client.ca_pem, base::read_file(directory + "/ca.crt", kFileBytesMax));
  TS_TRY(out.ns, base::read_file(directory + "/namespace", kFileBytesMax));
  return out;
}

}  // namespace tessera::kube
