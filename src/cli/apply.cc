// tessera apply: creates or changes objects from manifests, for machines without kubectl.
//
// An object that is not there is created; one that is there gets the manifest as a merge patch. Unlike kubectl apply,
// fields that vanish from a manifest stay on the object.

#include <algorithm>
#include <cctype>
#include <memory>

#include "cli/commands.h"
#include "cli/manifests.h"
#include "cli/session.h"

namespace tessera::cli {
namespace {

struct ApplyArgs {
  std::string kubeconfig = default_kubeconfig();
  std::vector<std::string> files;
};

// "deployment.apps/web", as kubectl names what it did.
std::string title(const json::Value& object, const Mapping& mapping) {
  std::string kind = object["kind"].str();
  std::ranges::transform(kind, kind.begin(), [](unsigned char c) { return std::tolower(c); });
  return fmt::format("{}{}{}/{}", kind, mapping.gvr.group.empty() ? "" : ".", mapping.gvr.group,
                     kube::Object(object).name());
}

base::Result<std::string> apply_one(Session& session, Mapper& mapper, json::Value object) {
  TS_TRY(const Mapping mapping, mapper.find(object));
  kube::Request request;
  request.gvr = mapping.gvr;
  request.query = {{"fieldValidation", "Strict"}, {"fieldManager", "tessera"}};
  if (mapping.namespaced) {
    const std::string given(kube::Object(object).ns());
    request.ns = given.empty() ? session.ns() : given;
    object.ref("metadata", "namespace") = request.ns;
  }
  const std::string name(kube::Object(object).name());
  kube::Request read = request;
  read.verb = kube::Verb::kGet;
  read.name = name;
  read.query.clear();
  auto before = name.empty() ? kube::Reply(base::error(base::Code::kNotFound, "no name"))
                             : session.call(read);
  if (!before && before.error().code != base::Code::kNotFound) return base::error(before.error());
  request.body = object;
  request.verb = before ? kube::Verb::kPatch : kube::Verb::kCreate;
  if (before) request.name = name;
  TS_TRY(const json::Value after, session.call(request));
  const bool same =
      before && kube::Object(*before).resource_version() == kube::Object(after).resource_version();
  return fmt::format("{} {}", title(after, mapping),
                     !before ? "created"
                     : same  ? "unchanged"
                             : "configured");
}

// What others stand in comes first: namespaces, then what is cluster-wide, then the rest, each in the order given.
int order_of(const json::Value& object) {
  const std::string_view kind = object["kind"].as_string();
  if (kind == "Namespace") return 0;
  return kind == "PriorityClass" || kind == "CustomResourceDefinition" || kind == "ServiceAccount"
             ? 1
             : 2;
}

int apply(const ApplyArgs& args) {
  auto session = Session::open(args.kubeconfig);
  if (!session) return fail(session.error());
  Mapper mapper(**session);
  int status = 0;
  std::vector<Manifest> all;
  for (const std::string& path : args.files) {
    auto manifests = read_manifests(path);
    if (!manifests) {
      status = fail(manifests.error());
      continue;
    }
    for (Manifest& manifest : *manifests) all.push_back(std::move(manifest));
  }
  for (int order = 0; order < 3; ++order) {
    for (Manifest& manifest : all) {
      if (order_of(manifest.object) != order) continue;
      const std::string label =
          fmt::format("{}: {} {}", manifest.file, manifest.object["kind"].as_string(),
                      kube::Object(manifest.object).name());
      auto done = apply_one(**session, mapper, manifest.object);
      if (done) {
        fmt::print("{}\n", *done);
      } else {
        status = fail({done.error().code, done.error().in(label).message, {}});
      }
    }
  }
  return status;
}

}  // namespace

void add_apply(CommandLine& line) {
  auto args = std::make_shared<ApplyArgs>();
  Command& command = line.command("apply", "Create or change objects from manifests");
  command.texts("-f,--filename", args->files, "Files or folders", true)
      .text("--kubeconfig", args->kubeconfig, "Which cluster");
  command.run([args] { return apply(*args); });
}

}  // namespace tessera::cli
