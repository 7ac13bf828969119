#include "apiserver/audit.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <utility>

#include "apiserver/auth.h"
#include "base/log.h"

namespace tessera::apiserver {
namespace {

using base::Code;
using json::Value;

constexpr size_t kUriMax = 2048;
constexpr size_t kAgentMax = 1024;

class AuditedResponder : public http::Responder {
 public:
  AuditedResponder(AuditLog& log, std::shared_ptr<const AuditRecord> record,
                   std::shared_ptr<http::Responder> inner)
      : log_(log), record_(std::move(record)), inner_(std::move(inner)) {}

  void send(http::Response response) override {
    finish(response.status);
    inner_->send(std::move(response));
  }
  void begin_stream(int status, std::string content_type, http::Headers headers) override {
    status_ = status;
    log_.write(record_, "ResponseStarted", status);
    inner_->begin_stream(status, std::move(content_type), std::move(headers));
  }
  bool write(std::string chunk) override { return inner_->write(std::move(chunk)); }
  void end_stream() override {
    finish(status_);
    inner_->end_stream();
  }
  void on_closed(std::function<void()> callback) override {
    inner_->on_closed(std::move(callback));
  }
  // A stream that its peer left, or a request that nobody answered.
  ~AuditedResponder() override { finish(status_ == 0 ? 500 : status_.load()); }

 private:
  void finish(int status) {
    if (!finished_.exchange(true)) log_.write(record_, "ResponseComplete", status);
  }

  AuditLog& log_;
  const std::shared_ptr<const AuditRecord> record_;
  const std::shared_ptr<http::Responder> inner_;
  std::atomic<int> status_{0};
  std::atomic<bool> finished_{false};
};

Value object_reference(const AuditRecord& record) {
  Value out = Value::object({{"resource", record.resource.resource}});
  const auto set = [&](std::string_view key, const std::string& text) {
    if (!text.empty()) out.set(key, text);
  };
  set("namespace", record.ns);
  set("name", record.name);
  set("apiGroup", record.resource.group);
  set("apiVersion", record.resource.version);
  set("subresource", record.subresource);
  return out;
}

}  // namespace

Value audit_event(const AuditRecord& record, std::string_view stage, int status, base::Time when) {
  Value out =
      Value::object({{"kind", "Event"},
                     {"apiVersion", "audit.k8s.io/v1"},
                     {"level", "Metadata"},
                     {"auditID", record.id},
                     {"stage", stage},
                     {"requestURI", std::string_view(record.uri).substr(0, kUriMax)},
                     {"verb", record.verb},
                     {"user", user_value(record.user)},
                     {"userAgent", std::string_view(record.user.user_agent).substr(0, kAgentMax)},
                     {"requestReceivedTimestamp", base::to_rfc3339_micro(record.received)},
                     {"stageTimestamp", base::to_rfc3339_micro(when)}});
  if (!record.impersonated.user.empty()) {
    out.set("impersonatedUser", user_value(record.impersonated));
  }
  if (!record.source_ip.empty()) out.set("sourceIPs", Value::array({record.source_ip}));
  if (!record.resource.resource.empty()) out.set("objectRef", object_reference(record));
  Value response = Value::object({{"metadata", Value::object()}, {"code", status}});
  if (status >= 400) {
    response.set("status", "Failure");
    response.set("reason", base::reason_of(base::code_of_http_status(status)));
  }
  out.set("responseStatus", std::move(response));
  if (!record.decision.empty()) {
    out.set("annotations", Value::object({{"authorization.k8s.io/decision", record.decision},
                                          {"authorization.k8s.io/reason", record.reason}}));
  }
  return out;
}

struct AuditLog::State {
  explicit State(Options from) : options(std::move(from)) {}
  ~State() {
    if (fd >= 0) ::close(fd);
  }

  const Options options;
  std::atomic<size_t> waiting{0};
  std::atomic<uint64_t> lost{0};
  // On the executor from open() on.
  int fd = -1;
  size_t size = 0;
  uint64_t lost_told = 0;

  base::Status open_file();
  void rotate();
  void append(const std::string& line);
  void tell_losses();
};

base::Status AuditLog::State::open_file() {
  fd = ::open(options.path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
  struct stat found{};
  if (fd < 0 || ::fstat(fd, &found) != 0) {
    return base::error(Code::kForbidden,
                       "cannot write the audit log {}: see that its folder is there and writable, "
                       "or switch the audit log off",
                       options.path);
  }
  size = static_cast<size_t>(found.st_size);
  return {};
}

void AuditLog::State::rotate() {
  ::close(std::exchange(fd, -1));
  const auto numbered = [&](int n) { return fmt::format("{}.{}", options.path, n); };
  for (int n = options.files_max; n > 1; --n) {
    std::rename(numbered(n - 1).c_str(), numbered(n).c_str());
  }
  if (options.files_max > 0) {
    std::rename(options.path.c_str(), numbered(1).c_str());
  } else {
    std::remove(options.path.c_str());
  }
  if (const auto opened = open_file(); !opened) base::log_error("{}", opened.error().message);
}

void AuditLog::State::append(const std::string& line) {
  if (fd >= 0 && size > 0 && size + line.size() > options.file_bytes_max) rotate();
  if (fd < 0 && !open_file()) {
    ++lost;
    return tell_losses();
  }
  const ssize_t done = ::write(fd, line.data(), line.size());
  if (done > 0) size += static_cast<size_t>(done);
  if (done == static_cast<ssize_t>(line.size())) return;
  ++lost;
  // A full disk: a half line must not join the next one.
  if (done > 0 && ::ftruncate(fd, static_cast<off_t>(size) - done) == 0) {
    size -= static_cast<size_t>(done);
  }
  tell_losses();
}

// At the first loss and then at every doubling.
void AuditLog::State::tell_losses() {
  if (lost < 2 * lost_told) return;
  lost_told = lost;
  base::log_warn("audit events lost path={} count={}", options.path, lost_told);
}

base::Result<std::unique_ptr<AuditLog>> AuditLog::open(Options options) {
  auto state = std::make_shared<State>(std::move(options));
  TS_TRY_STATUS(state->open_file());
  return std::unique_ptr<AuditLog>(new AuditLog(std::move(state)));
}

AuditLog::~AuditLog() = default;

void AuditLog::write(std::shared_ptr<const AuditRecord> record, std::string_view stage,
                     int status) {
  State& state = *state_;
  if (state.waiting.fetch_add(1) >= state.options.waiting_max) {
    --state.waiting;
    ++state.lost;
    return;
  }
  const base::Time now = state.options.clock->now();
  state.options.executor->post([keep = state_, record = std::move(record), stage, status, now] {
    --keep->waiting;
    keep->append(audit_event(*record, stage, status, now).dump() + "\n");
  });
}

uint64_t AuditLog::lost() const {
  return state_->lost;
}

std::shared_ptr<http::Responder> audited(AuditLog& log, std::shared_ptr<const AuditRecord> record,
                                         std::shared_ptr<http::Responder> inner) {
  return std::make_shared<AuditedResponder>(log, std::move(record), std::move(inner));
}

}  // namespace tessera::apiserver
