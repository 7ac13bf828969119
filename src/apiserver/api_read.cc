// get and list.
//
// The first page counts what is left; the following take that from the token, since all show the same moment.
#include <algorithm>
#include <utility>

#include "apiserver/api_core.h"
#include "apiserver/api_errors.h"
#include "apiserver/api_token.h"
#include "apiserver/crd_kind.h"

namespace tessera::apiserver {
namespace {

using base::Code;
using json::Value;

// Reads have seen durable data only, so they answer at once.
void answer(const CallPtr& call, base::Result<Value> result) {
  const int status = result ? 200 : base::http_status_of(result.error().code);
  call->done({std::move(result), status, std::move(call->warnings)});
}

base::Result<Store::Range> list_range(const Call& call, const Selection& selection, int64_t* rest) {
  const kube::Request& request = call.request;
  Store::Range range;
  range.prefix = selection.prefix();
  TS_TRY(const auto limit, read_number(request, "limit"));
  // Any moment will do: Kubernetes then answers from memory, whole.
  const bool any = request.option("resourceVersion") == "0" && request.option("continue").empty();
  range.limit = any ? 0 : limit.value_or(0);
  range.count_rest = range.limit != 0 && selection.matches_all();
  if (!selection.matches_all()) {
    range.filter = [&selection](const Value& object) { return selection.matches(object); };
  }
  if (const std::string_view token = request.option("continue"); !token.empty()) {
    TS_TRY(const ContinueToken from, ContinueToken::parse(token));
    if (!request.option("resourceVersion").empty() && request.option("resourceVersion") != "0") {
      return base::error(
          bad_request("specifying resource version is not allowed when using continue"));
    }
    range.revision = from.revision;
    range.after = from.last_key;
    range.count_rest = range.count_rest && from.rest == 0;
    *rest = from.rest;
    return range;
  }
  TS_TRY(const ListVersion version, ListVersion::parse(request));
  range.revision = version.exact;
  if (version.at_least > 0) range.revision = 0;
  return range;
}

// The moment of the first page is gone; the rest may still be had as it is now.
base::Error too_old(const Store::Range& range) {
  base::Error error{
      Code::kExpired,
      "The provided continue parameter is too old to display a consistent list result. You can "
      "start a new list without the continue parameter, or use the continue token in this "
      "response to retrieve the remainder of the results. Continuing with the provided token "
      "results in an inconsistent list - objects that were created, modified, or deleted between "
      "the time the first chunk was returned and now may show up in the list.",
      {}};
  const ContinueToken rest{.last_key = range.after, .moment_lost = true};
  error.causes.push_back({"", rest.text(), std::string(kContinueField)});
  return error;
}

base::Status check_fresh(const Core& core, const kube::Request& request) {
  TS_TRY(const ListVersion version, ListVersion::parse(request));
  return check_not_ahead(std::max(version.exact, version.at_least), core.store->revision());
}

// Nothing waits here, yet what is no number is refused.
base::Status read_timeout(const kube::Request& request) {
  TS_TRY([[maybe_unused]] const auto seconds, read_integer(request, "timeoutSeconds"));
  return {};
}

base::Result<Value> read_list(Core& core, const Call& call) {
  const Kind& kind = *call.kind;
  TS_TRY_STATUS(check_list_options(call.request));
  TS_TRY_STATUS(read_timeout(call.request));
  TS_TRY(const Selection selection, Selection::parse(call.face(), call.request));
  int64_t rest = 0;  // with this page
  TS_TRY(const Store::Range range, list_range(call, selection, &rest));
  if (range.after.empty()) TS_TRY_STATUS(check_fresh(core, call.request));
  auto page = core.store->list(&kind, range);
  if (!page && page.error().code == Code::kExpired && !range.after.empty()) {
    return base::error(too_old(range));
  }
  if (!page) return base::error(std::move(page).error());
  if (kind.custom != nullptr) {
    for (Value& item : page->items) item = as_served(kind, std::move(item));
  }
  Value list = Value::object({{"apiVersion", kind.api_version()}, {"kind", kind.list_kind_name()}});
  Value& meta = list.ref("metadata");
  meta.set("resourceVersion", std::to_string(page->revision));
  if (page->remaining > 0) {
    rest = range.count_rest ? page->remaining : rest - static_cast<int64_t>(page->items.size());
    rest = std::max<int64_t>(rest, 0);
    const ContinueToken next{.revision = page->revision, .last_key = page->last_key, .rest = rest};
    meta.set("continue", next.text());
    if (rest > 0 && selection.matches_all()) meta.set("remainingItemCount", rest);
  }
  list.set("items", json::array_of(page->items));
  return list;
}

}  // namespace

void do_get(Core& core, const CallPtr& call) {
  const Kind& kind = *call->kind;
  const auto version = read_version(call->request);
  if (!version) return answer(call, base::error(version.error()));
  if (const auto come = check_not_ahead(version->value_or(0), core.store->revision()); !come) {
    return answer(call, base::error(come.error()));
  }
  Store::Found found = core.store->durable(&kind, call->key());
  if (!found) return answer(call, base::error(not_found(call->face(), call->request.name)));
  answer(call, as_served(kind, std::move(found.object)));
}

void do_list(Core& core, const CallPtr& call) {
  answer(call, read_list(core, *call));
}

}  // namespace tessera::apiserver
