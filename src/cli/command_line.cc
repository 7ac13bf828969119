#include "cli/command_line.h"

#include <CLI/CLI.hpp>

#include "cli/commands.h"

namespace tessera::cli {
namespace {

class Cli11Command : public Command {
 public:
  explicit Cli11Command(CLI::App* app) : app_(app) {}
  Command& text(std::string name, std::string& value, std::string help, bool required) override {
    app_->add_option(std::move(name), value, std::move(help))
        ->required(required)
        ->capture_default_str();
    return *this;
  }
  Command& texts(std::string name, std::vector<std::string>& values, std::string help,
                 bool required) override {
    app_->add_option(std::move(name), values, std::move(help))->required(required)->delimiter(',');
    return *this;
  }
  Command& number(std::string name, int64_t& value, int64_t low, int64_t high,
                  std::string help) override {
    app_->add_option(std::move(name), value, std::move(help))
        ->check(CLI::Range(low, high))
        ->capture_default_str();
    return *this;
  }
  Command& flag(std::string name, bool& value, std::string help) override {
    app_->add_flag(std::move(name), value, std::move(help));
    return *this;
  }
  void run(std::function<int()> body) override { body_ = std::move(body); }

  CLI::App* app_;
  std::function<int()> body_;
};

}  // namespace

struct CommandLine::Impl {
  CLI::App app;
  std::vector<std::unique_ptr<Cli11Command>> commands;
};

CommandLine::CommandLine(std::string program, std::string about) : impl_(std::make_unique<Impl>()) {
  impl_->app.name(std::move(program));
  impl_->app.description(std::move(about));
  impl_->app.require_subcommand(1);
  impl_->app.set_version_flag("--version", kVersion, "Print the version");
}

CommandLine::~CommandLine() = default;

Command& CommandLine::command(std::string name, std::string about) {
  CLI::App* sub = impl_->app.add_subcommand(std::move(name), std::move(about));
  impl_->commands.push_back(std::make_unique<Cli11Command>(sub));
  return *impl_->commands.back();
}

int CommandLine::run(int argc, char** argv) {
  try {
    impl_->app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    const int status = impl_->app.exit(e);
    return status == 0 ? 0 : 2;
  }
  for (const auto& command : impl_->commands) {
    if (command->app_->parsed()) return command->body_();
  }
  return 2;
}

}  // namespace tessera::cli
