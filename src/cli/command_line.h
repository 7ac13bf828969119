// The command line as data: each command declares its options and what to run. CLI11 is behind it, in one unit, because
// its headers cost 15 seconds a unit.
//
// Errors:  wrong options are told to standard error with the usage, exit status 2.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace tessera::cli {

class Command {
 public:
  virtual ~Command() = default;
  virtual Command& text(std::string name, std::string& value, std::string help,
                        bool required = false) = 0;
  virtual Command& texts(std::string name, std::vector<std::string>& values, std::string help,
                         bool required = false) = 0;
  virtual Command& number(std::string name, int64_t& value, int64_t low, int64_t high,
                          std::string help) = 0;
  virtual Command& flag(std::string name, bool& value, std::string help) = 0;
  virtual void run(std::function<int()> body) = 0;
};

class CommandLine {
 public:
  CommandLine(std::string program, std::string about);
  ~CommandLine();
  Command& command(std::string name, std::string about);
  // The chosen command's exit status.
  int run(int argc, char** argv);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace tessera::cli
