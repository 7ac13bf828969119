// One accepted connection: handshake, requests one after the other, answers, streams, and a clean
// end.
//
// Shape:   handshake -> reading -> answering -> reading ... -> lingering -> closed. A refused
//          request (400, 408, 413, 431) is answered, then the connection ends. Lingering: our side
//          is shut and what still comes is thrown away, so that the peer gets to read the answer
//          before the reset.
// Threads: its lane's loop.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "base/clock.h"
#include "http/event_loop.h"
#include "http/exchange.h"
#include "http/out_queue.h"
#include "http/request_reader.h"
#include "http/server.h"
#include "http/transport.h"

namespace tessera::http {

class Connection;

// What all connections of one server share.
struct ServerShared {
  ServerOptions options;
  Handler handler;
  // Null: plain. Connections that began with an older one keep it.
  std::shared_ptr<SSL_CTX> tls() const {
    const std::lock_guard lock(tls_mutex);
    return tls_now;
  }
  mutable std::mutex tls_mutex;
  std::shared_ptr<SSL_CTX> tls_now;
  std::atomic<size_t> connections = 0;
};

// One I/O thread and its connections.
struct Lane {
  EventLoop loop;
  std::vector<char> scratch = std::vector<char>(size_t{64} << 10);
  std::unordered_set<std::shared_ptr<Connection>> connections;
  bool stopping = false;
  std::string date;  // IMF-fixdate of date_second
  int64_t date_second = 0;

  const std::string& date_now();
  void check_deadlines();
  void close_all();
};

class Connection : public EventLoop::Source, public std::enable_shared_from_this<Connection> {
 public:
  Connection(std::shared_ptr<ServerShared> shared, std::shared_ptr<Lane> lane);
  // Takes over the descriptor, and a place among the lane's connections.
  static void open(std::shared_ptr<ServerShared> shared, std::shared_ptr<Lane> lane, int fd);

  void on_ready(Ready ready) override;
  void check_deadline(base::Duration now);
  // Sends what is ready as far as it goes at once, says good-bye and closes.
  void shut_down();

 private:
  enum class State { kHandshake, kReading, kAnswering, kLingering, kClosed };

  void advance();
  bool turn();
  bool shake_hands();
  void identify_peer();
  void flush();
  bool may_read() const;
  bool read_once();
  void take_bytes(std::string_view bytes);
  void on_read_end(IoResult result);
  bool parse_buffered();
  size_t feed(std::string_view bytes);
  void dispatch();
  void refuse(int status, std::string_view text);
  void on_output();
  void push_head(const Response& response, bool stream);
  void finish_answer();
  void linger();
  void discard();
  void watch_socket();
  void arm(base::Duration timeout);
  void disarm();
  void close();

  const std::shared_ptr<ServerShared> shared_;
  const std::shared_ptr<Lane> lane_;
  int fd_ = -1;
  std::unique_ptr<Transport> transport_;
  PeerName peer_;
  std::string peer_address_;
  State state_ = State::kHandshake;
  std::string in_;  // read, not yet taken by the reader
  std::unique_ptr<RequestReader> reader_;
  std::shared_ptr<Exchange> exchange_;
  OutQueue out_;
  base::Duration deadline_;
  bool keep_alive_ = true;
  Framing framing_;
  bool answer_complete_ = false;  // all of it is in out_
  bool continue_sent_ = false;
  bool eof_ = false;
  bool read_wants_write_ = false;  // TLS may need the other direction
  bool write_wants_read_ = false;
};

}  // namespace tessera::http
