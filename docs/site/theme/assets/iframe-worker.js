/* Browsers refuse workers to pages that are opened as files. There, the script of the search runs in a hidden frame. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.inside = frame.contentWindow;
      this.inside.document.open();
      this.inside.document.write("<!doctype html><title>Search</title><body>");
      this.inside.document.close();
      this.inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.inside.importScripts = async (...scripts) => {
        for (const script of scripts) await this.load(script);
      };
      this.ready = this.load(url);
    }

    load(url) {
      const script = this.inside.document.createElement("script");
      script.src = url;
      this.inside.document.body.append(script);
      return new Promise((resolve) => script.addEventListener("load", resolve));
    }

    async postMessage(data) {
      await this.ready;
      this.inside.dispatchEvent(new MessageEvent("message", { data }));
    }
  };
}
