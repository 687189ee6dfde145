/** The part of the browsers' extension interface that is used here. Firefox offers it under the same name. */

declare const FIREFOX: boolean;

interface MessageSender {
  readonly id?: string;
  readonly origin?: string;
  readonly url?: string;
  readonly frameId?: number;
  readonly tab?: { readonly id?: number; readonly url?: string; readonly incognito?: boolean };
}

type Respond = (answer: unknown) => void;

interface ContentSetting {
  set(details: { primaryPattern: string; setting: "allow" | "block" | "ask" }): Promise<void>;
  clear(details: { scope: "regular" }): Promise<void>;
}

declare const chrome: {
  readonly runtime: {
    readonly id: string;
    getURL(path: string): string;
    openOptionsPage(): Promise<void>;
    sendMessage(message: unknown): Promise<unknown>;
    readonly onMessage: { addListener(listener: (message: unknown, sender: MessageSender, respond: Respond) => boolean | undefined): void };
    readonly onInstalled: { addListener(listener: () => void): void };
  };
  readonly storage: {
    readonly local: {
      get(key: string): Promise<Record<string, unknown>>;
      set(values: Record<string, unknown>): Promise<void>;
    };
  };
  readonly tabs: { query(filter: { active: true; currentWindow: true }): Promise<{ readonly url?: string }[]> };
  readonly action: {
    setBadgeText(details: { text: string; tabId?: number }): Promise<void>;
    setBadgeBackgroundColor(details: { color: string }): Promise<void>;
  };
  /** Chromium only. */
  readonly contentSettings: { readonly location: ContentSetting };
  /** Chromium only. */
  readonly offscreen: {
    createDocument(details: { url: string; reasons: readonly string[]; justification: string }): Promise<void>;
    closeDocument(): Promise<void>;
  };
};
