// tessera apply: creates or changes objects from manifests, for machines without kubectl.
//
// An object that is not there is created; one that is there gets the manifest as a merge patch. Unlike kubectl apply,
// fields that vanish from a manifest stay on the object.

#include <algorithm>
#include <filesystem>
#include <memory>

#include "base/file.h"
#include "cli/commands.h"
#include "cli/session.h"
#include "json/yaml.h"

namespace tessera::cli {
namespace {

struct ApplyArgs {
  std::string kubeconfig = default_kubeconfig();
  std::vector<std::string> files;
};

base::Result<std::vector<json::Value>> read_manifests(const std::string& path) {
  std::vector<std::string> files;
  if (std::filesystem::is_directory(path)) {
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
      const std::string extension = entry.path().extension();
      if (extension == ".yaml" || extension == ".yml" || extension == ".json") {
        files.push_back(entry.path());
      }
    }
    std::ranges::sort(files);
  } else {
    files.push_back(path);
  }
  std::vector<json::Value> out;
  for (const std::string& file : files) {
    TS_TRY(const std::string text, base::read_file(file, size_t{64} << 20));
    auto documents = json::parse_yaml_stream(text);
    if (!documents) return base::error(documents.error().in(file));
    for (json::Value& document : *documents) {
      if (document["kind"].as_string() != "List") {
        out.push_back(std::move(document));
        continue;
      }
      for (const json::Value& item : document["items"].items()) out.push_back(item);
    }
  }
  return out;
}

base::Result<std::string> apply_one(Session& session, Mapper& mapper, json::Value object) {
  TS_TRY(const Mapping mapping, mapper.find(object));
  kube::Request request;
  request.verb = kube::Verb::kCreate;
  request.gvr = mapping.gvr;
  if (mapping.namespaced) {
    const std::string given(kube::Object(object).ns());
    request.ns = given.empty() ? session.ns() : given;
    object.ref("metadata", "namespace") = request.ns;
  }
  const std::string name(kube::Object(object).name());
  request.body = object;
  auto created = session.call(request);
  if (created) {
    return fmt::format("{}/{} created", mapping.gvr.resource, kube::Object(*created).name());
  }
  if (created.error().code != base::Code::kAlreadyExists) return base::error(created.error());
  request.verb = kube::Verb::kPatch;
  request.patch_type = kube::PatchType::kMerge;
  request.name = name;
  TS_TRY(const json::Value patched, session.call(request));
  return fmt::format("{}/{} configured", mapping.gvr.resource, name);
}

int apply(const ApplyArgs& args) {
  auto session = Session::open(args.kubeconfig);
  if (!session) return fail(session.error());
  Mapper mapper(**session);
  int status = 0;
  for (const std::string& path : args.files) {
    auto objects = read_manifests(path);
    if (!objects) {
      status = fail(objects.error());
      continue;
    }
    for (json::Value& object : *objects) {
      const std::string label =
          fmt::format("{}: {} {}", path, object["kind"].as_string(), kube::Object(object).name());
      auto done = apply_one(**session, mapper, std::move(object));
      if (done) {
        fmt::print("{}\n", *done);
      } else {
        status = fail(done.error().in(label));
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
