// tessera store: looks a store over, copies it while in use, puts a copy in a new place.

#include <memory>

#include "apiserver/sqlite_files.h"
#include "base/file.h"
#include "cli/commands.h"

namespace tessera::cli {
namespace {

struct StoreArgs {
  std::string action;
  std::string data_dir = default_data_dir();
  std::string to;
  std::string from;
};

void print(const char* done, const apiserver::StoreFacts& facts) {
  fmt::print("{}: {} objects, {} bytes, revision {}\n", done, facts.objects, facts.bytes,
             facts.revision);
}

base::Error missing(const char* option, const char* what) {
  return {base::Code::kBadRequest, fmt::format("{} is missing: give {}", option, what), {}};
}

int store(const StoreArgs& args) {
  const std::string dir = args.data_dir + "/store";
  if (args.action == "check") {
    const auto facts = apiserver::check_store(dir);
    if (!facts) return fail(facts.error());
    print("whole", *facts);
    return 0;
  }
  if (args.action == "backup") {
    if (args.to.empty()) return fail(missing("--to", "the file to write"));
    const auto facts = apiserver::backup_store(dir, args.to);
    if (!facts) return fail(facts.error());
    print("backed up", *facts);
    return 0;
  }
  if (args.action == "restore") {
    if (args.from.empty()) return fail(missing("--from", "the file of a backup"));
    const auto facts = apiserver::restore_store(args.from, args.data_dir, "store");
    if (!facts) return fail(facts.error());
    print("restored", *facts);
    return 0;
  }
  return fail({base::Code::kBadRequest,
               fmt::format("unknown action \"{}\": use check, backup or restore", args.action),
               {}});
}

}  // namespace

void add_store(CommandLine& line) {
  auto args = std::make_shared<StoreArgs>();
  Command& command = line.command("store", "Check, back up or restore the store of `tessera up`");
  command.text("action", args->action, "check, backup or restore", true)
      .text("--data", args->data_dir,
            "Data folder of `tessera up`; backup works while it runs, restore wants it empty")
      .text("--to", args->to, "File that a backup writes; it must not exist")
      .text("--from", args->from, "File that a restore reads");
  command.run([args] { return store(*args); });
}

}  // namespace tessera::cli
